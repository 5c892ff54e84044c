"""Sentences and forests of a page: they say what the intervals say, and no more."""

import re
from dataclasses import replace

import numpy as np
import pytest
from scipy import stats

import restive as rs
from restive.paper.comparison_study import comparison_study
from restive.studies.paired_differences import LEAST_REPLICATIONS, rankings
from restive.studies.report import charts
from restive.studies.report.forests import difference_forest, ranked_forest, regret_forest
from restive.studies.report.verdicts import comparison_verdict, listed, study_verdict
from restive.studies.summary import Curve, Slope
from test_report import Page

COUNT = 120
NAMES = {"tsde": "TSDE", "ucb1": "UCB1", "thompson_every_step": "Thompson, every step"}
SPREAD = np.resize([-1.0, 1.0], COUNT)


@pytest.fixture(scope="module")
def compared(tmp_path_factory):
    """Return the folder of three learners in two instances."""
    out = tmp_path_factory.mktemp("verdicts") / "out"
    study = comparison_study(
        ["paper-frequentist", "satellite-urban-s"], list(NAMES), horizon=60, replications=COUNT
    )
    rs.run_study(study, out, workers=1)
    return out


@pytest.fixture(scope="module")
def cases(compared):
    return rs.load_results(compared)


def with_regrets(cases, levels, count=COUNT):
    """Give each learner of each instance a regret; small differences have no meaning."""
    changed = []
    for case in cases:
        instance = case.case.labels["instance"]
        noise = SPREAD if case.case.learner == "ucb1" else -SPREAD  # paired differences vary
        regrets = levels[instance][case.case.learner] + (
            noise if case.case.learner != "tsde" else 0
        )
        regrets = np.broadcast_to(regrets, COUNT)[:count] * 1.0
        changed.append(replace(case, replications=count, final_regrets=regrets))
    return rankings(changed)


def levels(first, second):
    keys = ("tsde", "thompson_every_step", "ucb1")
    return {
        "paper-frequentist": dict(zip(keys, first, strict=True)),
        "satellite-urban-s": dict(zip(keys, second, strict=True)),
    }


@pytest.mark.parametrize(
    ("first", "second", "headline"),
    [
        ((1, 5, 9), (1, 9, 5), "TSDE is first in both instances."),
        ((1, 1.01, 9), (1, 5, 9), "TSDE is first, or level with the first, in both instances."),
        (
            (1, 1.01, 9), (1.01, 1, 9),
            "TSDE and “Thompson, every step” are each first, or level with the first, in both "
            "instances.",
        ),
        (
            (1, 5, 9), (9, 5, 1),
            "No learner is first everywhere: TSDE and UCB1 are each first, or level with the "
            "first, in 1 of 2 instances.",
        ),
    ],
)  # fmt: skip
def test_who_is_first_in_several_instances(cases, first, second, headline):
    assert comparison_verdict(with_regrets(cases, levels(first, second)))[0] == headline


@pytest.mark.parametrize(
    ("first", "headline"),
    [
        ((1, 5, 9), "TSDE is first."),
        ((5, 1, 9), "Thompson, every step is first."),
        (
            (1, 1.01, 9),
            "TSDE and “Thompson, every step” share the first place: the data do not tell them "
            "apart.",
        ),
        (
            (1, 1.01, 1.02),
            "TSDE, “Thompson, every step” and UCB1 share the first place: the data do not tell "
            "them apart.",
        ),
    ],
)
def test_who_is_first_in_one_instance(cases, first, headline):
    one = [case for case in cases if case.case.labels["instance"] == "paper-frequentist"]
    found = with_regrets(one, levels(first, first))
    assert comparison_verdict(found)[0] == headline


def test_how_sure_it_is_counts_pairs(cases):
    found = with_regrets(cases, levels((1, 1.01, 9), (1, 5, 9)))
    _, (sure, firsts) = comparison_verdict(found)
    assert sure.startswith("The data tell 5 of 6 pairs of learners apart")
    assert firsts == (
        "First in paper-frequentist: TSDE and “Thompson, every step” (not told apart); "
        "satellite-urban-s: TSDE."
    )


def test_rankings_are_told_apart_by_what_was_swept(cases):
    one, _ = with_regrets(cases, levels((1, 5, 9), (1, 5, 9)))
    plain = [
        replace(case, case=replace(case.case, labels={"learner": case.case.learner}))
        for case in one.cases
    ]
    by_mapping = [replace(one, point="", mapping=name, cases=tuple(plain))
                  for name in ("myopic", "whittle")]  # fmt: skip
    headline, (_, firsts) = comparison_verdict(by_mapping)
    assert headline == "TSDE is first in both mappings."
    assert firsts == "First in myopic: TSDE; Whittle index: TSDE."
    swept = [replace(case, case=replace(case.case, labels=case.case.labels | {"horizon": 60}))
             for case in one.cases]  # fmt: skip
    headline, _ = comparison_verdict([replace(one, cases=tuple(swept))] * 3)
    assert headline == "TSDE is first in all 3 settings."


def test_of_few_replications_nothing_is_said(cases):
    found = with_regrets(cases, levels((1, 5, 9), (1, 5, 9)), LEAST_REPLICATIONS - 1)
    headline, lead = comparison_verdict(found)
    assert headline == "Too few replications to tell learners apart."
    assert "There are 99 of each; at least 100 are needed" in lead[0]


def test_a_name_with_a_comma_has_quotation_marks_in_a_list():
    assert listed(["a"]) == "a"
    assert listed(["a, b"]) == "a, b"
    assert listed(["a", "b, c", "d"]) == "a, “b, c” and d"


# One learner


def grown(case, slope, loss=1.0, half=0.5, goal=1.0):
    """Return a case with this growth, this regret at T = 60 and this J."""
    size = len(case.times)
    stderr = half / stats.t.ppf(0.975, COUNT - 1)
    return replace(
        case, slope=slope and Slope(*slope, 6, 60),
        regret=Curve(np.full(size, loss), np.full(size, stderr), COUNT),
        truth_rewards=np.full(COUNT, goal),
    )  # fmt: skip


SLOW, BELOW, MAYBE, FAST = (0.3, 0.2, 0.4), (0.45, 0.35, 0.6), (0.9, 0.7, 1.1), (1.2, 1.1, 1.3)


@pytest.mark.parametrize(
    ("slopes", "headline"),
    [
        ([SLOW], "Regret grows more slowly than the square root of time."),
        ([SLOW, SLOW], "Regret grows more slowly than the square root of time in both cases."),
        ([SLOW, SLOW, BELOW], "Regret grows more slowly than time in all 3 cases."),
        ([SLOW, BELOW, MAYBE], "Regret grows more slowly than time in 2 of 3 cases."),
        ([FAST, FAST], "Regret grows more slowly than time in 0 of 2 cases."),
        ([SLOW, None], "Regret grows more slowly than time in 1 of 2 cases."),
        ([None, None], "The data do not tell how fast regret grows."),
    ],
)
def test_how_fast_regret_grows(cases, slopes, headline):
    found = [grown(cases[0], slope) for slope in slopes]
    assert study_verdict(found, charts.Naming(found))[0] == headline


def test_exponents_and_losses_are_told_with_their_intervals(cases):
    one = [grown(cases[0], SLOW, loss=1.0, half=0.5, goal=2.0)]
    assert study_verdict(one, charts.Naming(one))[1] == [
        "Over the last decade of time it grows like a power of time; with 95% intervals the "
        "exponent is 0.30 [0.20, 0.40].",
        # (1.0 + 0.5) / 60 / 2 = 1.25%, rounded up
        "Up to T it loses at most 1.3% of J, what the same policy earns when it knows the truth "
        "(95% intervals).",
    ]
    several = [grown(case, slope) for case, slope in zip(cases, [SLOW, BELOW, FAST] * 2,
               strict=True)]  # fmt: skip
    exponents, loss = study_verdict(several, charts.Naming(several))[1]
    assert exponents.endswith("the exponents are 0.30 to 1.20, all within [0.20, 1.30].")
    assert loss.startswith("Up to T in every case it loses at most 2.5% of J")


@pytest.mark.parametrize("goal", [0.0, -1.0])
def test_a_loss_is_no_share_of_a_goal_that_is_not_positive(cases, goal):
    one = [grown(cases[0], SLOW, goal=goal)]
    assert study_verdict(one, charts.Naming(one))[1][-1] == (
        "Up to T it loses at most 0.025 per step (95% intervals)."
    )


def test_without_an_error_no_loss_is_told(cases):
    one = [grown(cases[0], None, half=float("nan"))]
    assert not any("loses" in line for line in study_verdict(one, charts.Naming(one))[1])


# Forests, and the whole page


def test_the_forest_of_regrets_is_the_ranking(cases):
    naming = charts.Naming(cases)
    found = rankings(cases)
    chart = ranked_forest(found, naming)
    assert [panel.title for panel in chart.panels] == ["paper-frequentist", "satellite-urban-s"]
    for panel, ranking in zip(chart.panels, found, strict=True):
        for row, case in zip(panel.data, ranking.cases, strict=True):
            assert row["name"] == NAMES[case.case.learner]
            assert row["x"] == [60]
            assert row["mean"] == pytest.approx([case.regret.mean[-1]], rel=1e-5)
            assert row["lower"] == pytest.approx([case.regret.lower[-1]], rel=1e-5)
            assert row["upper"] == pytest.approx([case.regret.upper[-1]], rel=1e-5)


def test_the_forest_of_differences_is_paired(cases, monkeypatch):
    drawn = {}
    monkeypatch.setattr(
        "restive.studies.report.forests.draw_forest",
        lambda axes, rows, scale, label, **given: drawn.update({label: rows}),
    )
    found, filled = with_regrets(cases, levels((1, 1.01, 9), (1, 5, 9))), []
    chart = difference_forest(found, charts.Naming(cases))
    for panel, ranking in zip(chart.panels, found, strict=True):
        drawn.clear()
        panel.draw(None, "linear")
        ((label, rows),) = drawn.items()
        assert label == f"difference from {NAMES[ranking.cases[0].case.learner]}"
        assert len(rows) == 2
        for at, row in enumerate(rows, 1):
            pair = ranking.pairs[0, at]
            gaps = ranking.cases[at].final_regrets - ranking.cases[0].final_regrets
            assert row.value == pytest.approx(gaps.mean(), abs=1e-9)
            assert row.upper - row.value == pytest.approx(pair.half_width)
            assert row.filled == pair.told_apart
            assert row.text.startswith("+")
            filled.append(row.filled)
    assert filled == [False, True, True, True]


def test_one_line_in_several_settings_is_one_panel_with_a_row_each(cases):
    alone = [case for case in cases if case.case.learner == "tsde"]
    points = {case.case.point: [case] for case in alone}
    (panel,) = regret_forest(points, charts.Naming(alone)).panels
    assert [row["name"] for row in panel.data] == [
        "instance paper-frequentist", "instance satellite-urban-s"]  # fmt: skip


def test_the_page_of_a_comparison_leads_with_who_is_first(compared, cases):
    text = rs.write_report(compared).read_text(encoding="utf-8")
    found = Page(text)
    headline, lead = comparison_verdict(rankings(cases))
    assert found.headings[0] == ["h1", headline]
    assert all(sentence in found.text for sentence in lead)
    assert [title for _, title in found.headings[1:]] == [
        "Regret at the end", "How sure is the order?", "Regret against time",
        "More charts, tables, and how to run it again",
    ]  # fmt: skip
    first = text.index("<figure")
    assert text.index("<h1>") < first < text.index("<details") < text.index("<table")
    assert found.tags["figure"] == 2 * (3 + 2)
    looks = {}  # one colour per learner
    for data in found.data:
        for line in data["series"]:
            if "colour" in line:
                looks.setdefault(line["name"], set()).add((line["key"], line["colour"]))
    assert set(looks) == set(NAMES.values())
    assert all(len(each) == 1 for each in looks.values())
    assert len(set.union(*looks.values())) == 3
    assert re.findall(r"<summary>([^<]*)", text)[:2] == [
        "Average reward so far", "Regret against the relaxation bound"]  # fmt: skip
