"""Learners side by side: rankings by a second method, and the command."""

import html
import importlib
import json
import re
import sys
from dataclasses import replace
from itertools import combinations
from pathlib import Path

import numpy as np
import pytest
from scipy import stats
from typer.testing import CliRunner

import restive as rs
from restive.cli import app
from restive.errors import ProblemError
from restive.paper.comparison_study import comparison_study
from restive.studies.ledger import Ledger
from restive.studies.paired_differences import LEAST_REPLICATIONS, rankings
from restive.studies.report import ranking as ranking_page
from restive.studies.report.charts import Naming
from restive.studies.report.ranking import (
    HEADER,
    bound_caption,
    ranking_caption,
    ranking_rows,
    ranking_verdict,
    victories,
)
from restive.studies.report.study_page import charts_of
from restive.studies.spec import study_from_data
from restive.studies.timing import seconds_per_step

LEARNERS = ["tsde", "thompson_every_step", "ucb1"]
INSTANCES = ["paper-frequentist", "satellite-urban-s"]
COUNT = 120


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    out = tmp_path_factory.mktemp("compared") / "out"
    study = comparison_study(INSTANCES, LEARNERS, horizon=400, replications=COUNT, seed=3)
    rs.run_study(study, out)
    return out


@pytest.fixture(scope="module")
def found(folder):
    return rs.load_results(folder)


def earned(folder, case, name="expected"):
    return np.concatenate([arrays[name] for _, arrays in Ledger.open(folder).chunks(case)])


def test_pairs_are_paired_differences_of_rewards(folder, found):
    quantile = stats.t.ppf(1 - 0.05 / 2 / 3, COUNT - 1)  # three pairs an instance
    compared = rankings(found)
    assert [ranking.point for ranking in compared] == [f"instance {name}" for name in INSTANCES]
    for ranking in compared:
        assert {case.case.learner for case in ranking.cases} == set(LEARNERS)
        regrets = [case.final_regrets.mean() for case in ranking.cases]
        assert regrets == sorted(regrets)
        for i, j in combinations(range(3), 2):
            pair = ranking.pairs[i, j]
            first, second = ranking.cases[i], ranking.cases[j]
            # the oracle and J cancel: what is left are the rewards, replication by replication
            gaps = earned(folder, first.case)[:, -1] - earned(folder, second.case)[:, -1]
            assert pair.difference == pytest.approx(gaps.mean(), abs=1e-9)
            assert pair.half_width == pytest.approx(quantile * stats.sem(gaps), rel=1e-6)
            assert pair.told_apart == (stats.ttest_1samp(gaps, 0).statistic > quantile)
            assert pair.replications == COUNT


def test_places_count_those_that_beat_and_are_beaten(found):
    for ranking in rankings(found):
        for at in range(len(ranking.cases)):
            better = sum(ranking.pairs[j, at].told_apart for j in range(at))
            worse = sum(ranking.pairs[at, j].told_apart for j in range(at + 1, 3))
            first, last = better + 1, 3 - worse
            assert ranking.place(at) == (str(first) if first == last else f"{first}-{last}")
    # on the paper's channels a learner that ignores the state is last, and told apart
    assert ranking_of(found, INSTANCES[0]).place(2) == "3"
    assert ranking_of(found, INSTANCES[0]).cases[2].case.learner == "ucb1"


def ranking_of(found, instance):
    return next(ranking for ranking in rankings(found) if ranking.point.endswith(instance))


def test_all_learners_meet_the_same_worlds(found):
    for instance in INSTANCES:
        cases = ranking_of(found, instance).cases
        for case in cases[1:]:
            assert np.array_equal(case.oracle_reward.mean, cases[0].oracle_reward.mean)
            assert np.array_equal(case.truth_rewards, cases[0].truth_rewards)


def test_a_learner_is_not_compared_with_itself_or_alone(found):
    alone = rankings([case for case in found if case.case.learner == "tsde"])
    assert [(len(ranking.cases), ranking.pairs) for ranking in alone] == [(1, {})] * 2
    assert [ranking.place(0) for ranking in alone] == ["1", "1"]


# ---------------------------------------------------------------- false alarms


@pytest.fixture(scope="module")
def skewed(tmp_path_factory):
    """Return learners whose regrets are skewed: most runs lose little, some very much."""
    out = tmp_path_factory.mktemp("skewed") / "out"
    relatives = ["tsde", "tsde_doubling_only", "thompson_every_step", "episodic_thompson"]
    study = comparison_study(INSTANCES[:1], relatives, horizon=10_000, replications=400, seed=5)
    rs.run_study(study, out)
    cases = rs.load_results(out)
    assert all(stats.skew(case.final_regrets) > 2 for case in cases)
    return cases


def false_alarms(cases, count, trials):
    """Return how often some pair is told apart where all learners are equally good.

    Regrets are shifted to mean zero; all learners have the same `count` worlds, drawn anew.
    """
    rng = np.random.default_rng(0)
    level = [case.final_regrets - case.final_regrets.mean() for case in cases]
    alarms = 0
    for _ in range(trials):
        worlds = rng.integers(len(level[0]), size=count)
        drawn = [
            replace(case, replications=count, final_regrets=regrets[worlds])
            for case, regrets in zip(cases, level, strict=True)
        ]
        (ranking,) = rankings(drawn)
        alarms += any(pair.told_apart for pair in ranking.pairs.values())
    return alarms / trials


@pytest.mark.parametrize("count", [LEAST_REPLICATIONS, 2 * LEAST_REPLICATIONS])
def test_equals_are_told_apart_in_one_comparison_of_twenty_at_most(skewed, count):
    """The rate is 5%, on real and skewed regrets; 8% of 1000 would be 4 sd more."""
    assert 0 < false_alarms(skewed, count, 1000) < 0.08


@pytest.mark.parametrize("count", [1, 2, 10, 20, 40, LEAST_REPLICATIONS - 1])
def test_of_few_replications_nothing_is_claimed(skewed, count):
    assert false_alarms(skewed, count, 100) == 0


@pytest.mark.parametrize(("count", "claimed"), [(2, 0), (LEAST_REPLICATIONS - 1, 0), (200, 6)])
def test_differences_without_spread_are_not_claimed_from_few(skewed, count, claimed):
    constant = [
        replace(case, replications=count, final_regrets=np.full(count, float(number)))
        for number, case in enumerate(skewed)
    ]
    (ranking,) = rankings(constant)
    assert sum(pair.told_apart for pair in ranking.pairs.values()) == claimed
    places = ["1-4"] * 4 if claimed == 0 else ["1", "2", "3", "4"]
    assert [ranking.place(at) for at in range(4)] == places
    assert len(victories(ranking)) == (0 if claimed == 0 else 3)
    verdict = ranking_verdict(ranking)
    if claimed == 0:
        expected = f"Too few replications to tell learners apart: {count}, and at least 100 are"
        assert verdict.startswith(expected)
    else:
        assert "that the data tell apart: 6 of 6" in verdict


# ---------------------------------------------------------------- what is shown


def test_victories_name_whom_a_learner_beats_and_by_how_much(found):
    ranking = ranking_of(found, INSTANCES[0])
    shown = dict(victories(ranking))
    assert set(shown) == {"TSDE", "Thompson, every step"}
    for at, title in ((0, ranking.cases[0]), (1, ranking.cases[1])):
        pair = ranking.pairs[at, 2]
        (line,) = shown[title.case.settings.learner().title].split("; ")
        assert line.startswith("UCB1 by ")
        value, half = map(float, line.removeprefix("UCB1 by ").split(" ± "))
        assert value == pytest.approx(pair.difference, rel=0.05)
        assert half == pytest.approx(pair.half_width, rel=0.05)


def test_the_time_of_a_step_is_that_of_the_learner_alone(found, monkeypatch):
    asked = []

    def known(case, *, with_oracle):
        asked.append((case.learner().name, with_oracle))
        return 0.000352

    monkeypatch.setattr(ranking_page, "seconds_per_step", known)
    monkeypatch.setattr(ranking_page, "_measured", {})
    rows = ranking_rows(ranking_of(found, INSTANCES[0]))
    assert sorted(asked) == [(name, False) for name in sorted(LEARNERS)]
    assert [row[-1] for row in rows] == ["-", "350", "350", "350"]


@pytest.mark.parametrize("name", ["tsde", "ucb1"])
def test_who_knows_the_truth_does_not_play_when_a_learner_is_timed(name, monkeypatch):
    """The optimal policy is asked in Python, which takes hundreds of times as long as UCB1."""
    from restive.measure import replication
    from restive.studies.timing import seconds_per_step

    (case,) = comparison_study(INSTANCES[1:], [name], "optimal", horizon=20).cases
    ran, learner_state = [], replication.LearnerState

    def watched(*given, knows=False):
        ran.extend([name] * knows)
        return learner_state(*given, knows=knows)

    monkeypatch.setattr(replication, "LearnerState", watched)
    assert seconds_per_step(case.settings, with_oracle=False) > 0
    assert ran == []
    assert seconds_per_step(case.settings, with_oracle=True) > 0
    assert ran


@pytest.mark.parametrize(("levels", "most"), [([0.2, 0.5, 0.8], 5), ([0.3, 0.6], 64)])
def test_a_mapping_that_plans_for_systems_is_timed_by_a_few_plans(levels, most):
    """With 729 systems a few plans stand for all; 64 are remembered, and tried out."""
    from restive.studies.timing import seconds_per_step

    made = []

    def counted(bandit):
        made.append(bandit)
        return rs.policies.lp_priority(bandit)

    rs.registry.register_mapping("counted", counted)
    try:
        made.clear()
        data = {
            "kind": "bayesian", "policy_mappings": ["counted"], "horizon": 400, "num_pulls": 1,
            "prior": {"levels": levels, "num_arms": 3},
        }  # fmt: skip
        (case,) = study_from_data(data).cases
        assert seconds_per_step(case.settings, with_oracle=True) > 0
    finally:
        rs.registry.unregister_mapping("counted")
    assert 0 < len(made) <= most


def assert_shown(text, samples):
    """Compare a cell with the mean of samples and its 95% half-width, to the digits shown."""
    value, half = (float(word.replace(",", "")) for word in text.split(" ± "))
    last_digit = 10.0 ** -len(text.partition("± ")[2].partition(".")[2])
    assert value == pytest.approx(samples.mean(), abs=0.51 * last_digit)
    assert half == pytest.approx(
        stats.t.ppf(0.975, COUNT - 1) * stats.sem(samples), abs=0.51 * last_digit
    )


@pytest.mark.parametrize("instance", INSTANCES)
def test_rows_show_both_regrets_and_what_was_earned(folder, found, instance):
    ranking = ranking_of(found, instance)
    known, *rows = (dict(zip(HEADER, row, strict=True)) for row in ranking_rows(ranking))
    bandit = rs.zoo.load(instance).bandit
    limit = 400 * rs.relaxation_bound(bandit)
    target = 400 * rs.evaluate(bandit, rs.whittle(bandit)).average_reward
    oracle = earned(folder, ranking.cases[0].case, "oracle_expected")[:, -1]
    assert known["learner"] == "(knows the truth)"
    assert_shown(known["against the bound"], limit - oracle)
    assert_shown(known["reward per step"], oracle / 400)
    assert [known[name] for name in ("place", "regret", "episodes", "us a step")] == ["-"] * 4
    for row, case in zip(rows, ranking.cases, strict=True):
        total = earned(folder, case.case)[:, -1]
        assert_shown(row["regret"], target - total)
        assert_shown(row["against the bound"], limit - total)
        assert_shown(row["reward per step"], total / 400)
        episodes = earned(folder, case.case, "episodes")[:, -1].mean()
        assert float(row["episodes"].replace(",", "")) == pytest.approx(episodes, abs=0.51)
        assert float(row["us a step"]) > 0
    assert f"T times {limit / 400:.6f}, which no policy exceeds" in bound_caption(ranking)
    caption = ranking_caption(ranking)
    assert "'Whittle index' that knows the truth" in caption
    assert f"Means over {COUNT} replications at T = 400, ± the half-width of a 95%" in caption


def test_where_the_truth_is_drawn_there_is_no_bound(tmp_path):
    study = comparison_study(["paper-bayesian"], ["tsde", "ucb1"], horizon=30, replications=5)
    rs.run_study(study, tmp_path / "out")
    cases = rs.load_results(tmp_path / "out")
    (ranking,) = rankings(cases)
    assert [row[HEADER.index("against the bound")] for row in ranking_rows(ranking)] == ["-"] * 3
    assert "bound" not in ranking_caption(ranking)
    assert bound_caption(ranking) == ""
    shown, folded = charts_of(cases, [ranking], Naming(cases))
    assert [chart.name for chart in (*shown, *folded)] == ["end", "differences", "regret", "reward"]


def test_a_stopped_run_compares_what_all_have(found):
    shortened = [
        case if case.case.learner != "ucb1" else shorter(case, 40)
        for case in found
        if case.case.point.endswith("urban-s")
    ]
    (ranking,) = rankings(shortened)
    assert {pair.replications for pair in ranking.pairs.values()} == {40}


def shorter(case, count):
    return replace(
        case,
        replications=count,
        final_regrets=case.final_regrets[:count],
        truth_rewards=case.truth_rewards[:count],
    )


def test_by_default_all_learners_that_can_play_are_compared():
    study = comparison_study(["paper-frequentist"], horizon=50)
    names = [case.learner for case in study.cases]
    unfit = ("ucwhittle", "wiql", "qwi")  # for arms that are always seen
    assert names == [name for name in rs.registry.LEARNERS if name not in unfit]


def test_what_is_wrong_for_every_learner_is_told_once():
    told = []
    with pytest.raises(
        rs.errors.ProblemError, match=r"^unknown policy mapping 'optimall'.*'optimal'"
    ):
        comparison_study(["paper-frequentist"], policy_mapping="optimall", tell=told.append)
    with pytest.raises(rs.errors.ProblemError, match="horizon"):
        comparison_study(["paper-frequentist"], horizon=0, tell=told.append)
    assert told == []


def test_titles_count_learners():
    one, two = (
        comparison_study(["paper-frequentist"], names) for names in (["ucb1"], ["tsde", "ucb1"])
    )
    assert one.title == "ucb1 on paper-frequentist"
    assert two.title == "2 learners on paper-frequentist"


def test_each_instance_has_its_own_horizon_by_default():
    study = comparison_study(["paper-frequentist", "satellite-urban-s"], ["tsde"])
    horizons = [case.settings.horizon for case in study.cases]
    assert horizons == [rs.zoo.load(name).horizon for name in INSTANCES]
    again = study_from_data(json.loads(json.dumps(study.data)))
    assert [case.settings.horizon for case in again.cases] == horizons


def test_the_command(tmp_path):
    out = tmp_path / "out"
    words = ["compare", "satellite-urban-s", "--learners", "tsde,ucb1", "--horizon", "100"]
    done = CliRunner().invoke(app, [*words, "--replications", "100", "--out", str(out)])
    assert done.exit_code == 0, done.output
    page = (out / "report.html").read_text(encoding="utf-8")
    assert "UCB1" in page
    assert "minus" in page
    (ranking,) = rankings(rs.load_results(out))
    printed = " ".join(done.output.split())
    caption = f"{ranking_caption(ranking)} {bound_caption(ranking)}"
    assert caption in printed
    assert caption in html.unescape(page)
    for row in ranking_rows(ranking):
        for column, cell in zip(HEADER, row, strict=True):
            if column not in ("place", "us a step"):  # a time is measured anew each time
                assert cell in printed
                assert f">{cell}</td>" in page
    assert "against the bound" in printed
    assert page.count("against the bound</th>") == 1
    assert page.count("<figure") == 5
    assert ranking_verdict(ranking) in printed
    assert ranking_verdict(ranking) in page
    ((winner, beaten),) = victories(ranking)
    assert f"│ {winner} │ {beaten} │" in printed
    again = CliRunner().invoke(app, [*words, "--replications", "100", "--out", str(out)])
    assert again.exit_code == 0
    other = CliRunner().invoke(app, [*words, "--seed", "1", "--out", str(out)])
    assert isinstance(other.exception, rs.RestiveError)
    assert "seed: 0 there, 1 in this study" in str(other.exception)


def test_a_single_learner_is_shown(tmp_path):
    words = ["compare", "satellite-urban-s", "--learners", "tsde", "--horizon", "30"]
    done = CliRunner().invoke(app, [*words, "--replications", "5", "--out", str(tmp_path / "out")])
    assert done.exit_code == 0, done.output
    (ranking,) = rankings(rs.load_results(tmp_path / "out"))
    for cell in ranking_rows(ranking)[1][:-1]:
        assert cell in done.output
    assert "(knows the truth)" in done.output
    assert "pairs" not in done.output
    assert "Too few" not in done.output


def test_without_matplotlib_nothing_is_run(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    words = ["compare", "satellite-urban-s", "--learners", "tsde", "--horizon", "30"]
    done = CliRunner().invoke(app, [*words, "--out", str(tmp_path / "out")])
    assert isinstance(done.exception, rs.RestiveError)
    assert "pictures need matplotlib" in str(done.exception)
    assert not (tmp_path / "out").exists()


def test_the_tables_of_the_documentation(folder, found, monkeypatch):
    monkeypatch.syspath_prepend(str(Path(__file__).parent.parent / "docs"))
    tables = importlib.import_module("comparison_tables")
    compared = tables.Comparison([folder])
    ranking = ranking_of(found, INSTANCES[1])
    (at,) = [i for i, case in enumerate(ranking.cases) if case.case.learner == "ucb1"]
    (first,) = [i for i, case in enumerate(ranking.cases) if case.case.learner == "tsde"]
    pair = ranking.pairs[min(first, at), max(first, at)]
    value = pair.difference if first < at else -pair.difference
    sign = "·" if not pair.told_apart else "+" if value > 0 else "−"

    def rows(lines):
        found = (line.strip("| ").split(" | ") for line in lines if line.startswith("|"))
        return {row[0]: row[1:] for row in found}

    shown = rows(tables.regrets(compared))
    assert shown["learner"] == ["paper-frequentist", "urban-s"]
    regret = ranking_rows(ranking)[1 + at][HEADER.index("regret")]
    assert shown["UCB1"][1] == f"{regret} ({ranking.place(at)})"
    cell = rows(tables.against(compared))["UCB1"][1]
    difference, half_width = cell.removesuffix(f" {sign}").split(" ± ")
    assert float(difference) == pytest.approx(value, rel=0.05)
    assert float(half_width) == pytest.approx(pair.half_width, rel=0.05)


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["compare", "satelite-urban-s"], "did you mean 'satellite-urban-s'"),
        (["compare", "paper-frequentist", "--learners", "tsed"], "did you mean 'tsde'"),
        (["compare", "paper-frequentist", "--policy-mapping", "whitle"], "did you mean 'whittle'"),
        (["compare", "paper-frequentist", "--learners", "tsde,tsde"], "named twice"),
        (["compare", "paper-frequentist", "--learners", ","], "names separated by commas, got ','"),
        (["compare", "paper-frequentist", "--learners", ""], "names separated by commas, got ''"),
    ],
)
def test_what_cannot_be_is_told(words, message, tmp_path):
    done = CliRunner().invoke(app, [*words, "--out", str(tmp_path / "out")])
    assert isinstance(done.exception, rs.RestiveError)
    assert message in str(done.exception)
    assert not (tmp_path / "out").exists()


def test_a_second_comparison_gets_a_folder_of_its_own(tmp_path, monkeypatch):
    """The same one is continued where it was; another never fails for the first one's folder."""
    monkeypatch.chdir(tmp_path)
    words = ["compare", "satellite-urban-s", "--learners", "ucb1", "--replications", "2"]

    def compared(*more):
        done = CliRunner().invoke(app, [*words, *more])
        assert done.exit_code == 0, done.output
        return done.output.rstrip().splitlines()[-1]

    assert compared("--horizon", "20") == f"the report: {Path('comparison/report.html')}"
    assert compared("--horizon", "30") == f"the report: {Path('comparison-2/report.html')}"
    assert compared("--horizon", "20") == f"the report: {Path('comparison/report.html')}"
    assert compared("--horizon", "30", "--replications", "3").endswith("comparison-2/report.html")
    Path("comparison-3").write_text("something else")
    assert compared("--horizon", "40").endswith("comparison-4/report.html")


def test_where_some_arms_are_always_seen_those_learners_compete_that_can(tmp_path):
    """Without names: who averages an index cannot where only some have Dirichlet priors."""
    path = tmp_path / "mixed.toml"
    arm = "[[arm]]\np01 = 0.3\np11 = 0.6\n"
    path.write_text(f"num_pulls = 1\n{arm}seen = 'always'\n{arm}count = 2\n")
    study = comparison_study([str(path)], horizon=20, replications=2)
    learners = [case.learner for case in study.cases]
    assert "tsde" in learners
    assert "mean_index" not in learners
    rs.run_study(study, tmp_path / "out")
    assert len(rs.load_results(tmp_path / "out")) == len(learners)
    with pytest.raises(rs.errors.ProblemError, match="mean_index averages an index"):
        rs.run_study(comparison_study([str(path)], ["mean_index"], horizon=20), tmp_path / "no")


SEEN = "num_pulls = 1\n[[arm]]\np01 = 0.3\np11 = 0.6\nseen = 'always'\ncount = 2\n"


def test_who_names_a_learner_that_does_not_fit_is_told_those_that_do(tmp_path):
    (path := tmp_path / "seen.toml").write_text(SEEN)
    with pytest.raises(rs.errors.ProblemError) as refused:
        comparison_study([str(path)], ["tsde", "ucb1"], horizon=20)
    said, _, fitting = str(refused.value).partition("; those that fit: ")
    assert said == "learner ucb1 is for arms that are seen when pulled, and arm 0 is always seen"
    by_default = comparison_study([str(path)], horizon=20)
    assert fitting.split(", ") == [case.learner for case in by_default.cases]


def test_few_looks_are_no_worry_where_arms_are_always_seen(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for name, text in (("seen", SEEN), ("pulled", SEEN.replace("'always'", "'pulled'"))):
        Path(f"{name}.toml").write_text(text)
        options = ["--learners", "tsde", "--horizon", "30", "--replications", "2", "--out", name]
        done = CliRunner().invoke(app, ["compare", f"{name}.toml", *options])
        assert ("Few looks" in done.stdout) == (name == "pulled"), done.output


def test_a_long_comparison_says_how_long_and_what_makes_it_shorter(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("seen.toml").write_text(SEEN)
    asked = []

    def seconds(settings, *, with_oracle, most_steps):
        asked.append(settings.learner().name)
        return {"tsde": 0.01, "mean_index": 0.03}[asked[-1]]  # too slow for a longer trial

    monkeypatch.setattr("restive.studies.timing.seconds_per_step", seconds)
    monkeypatch.setattr(sys.modules["restive.cli.compare"], "run_shown", lambda *given: sys.exit())
    words = ["compare", "seen.toml", "--learners", "tsde,mean_index", "--workers", "2"]
    done = CliRunner().invoke(app, words)
    said = " ".join(done.stderr.split())
    assert "this takes about 2.2 h, of which mean_index takes 1.7 h, " in said
    assert re.search(r"h, at most .*B of memory and [\d.]+ .*B on disk; fewer --replications", said)
    for options in (["--horizon", "100"], ["--out", str(tmp_path)]):  # short; to be continued
        asked.clear()
        assert "this takes" not in CliRunner().invoke(app, [*words, *options]).stderr
        assert asked == []


def test_an_instance_of_ones_own_is_timed_by_a_short_trial(tmp_path):
    (path := tmp_path / "seen.toml").write_text(SEEN)
    (case,) = comparison_study([str(path)], ["tsde"]).cases
    assert (case.settings.horizon, case.settings.shortened(5).horizon) == (2000, 5)
    assert seconds_per_step(case.settings, with_oracle=True, most_steps=5) > 0


def test_a_study_keeps_its_horizon_on_an_instance_of_the_zoo(tmp_path):
    path = tmp_path / "own.toml"
    path.write_text('title = "x"\nlearners = ["tsde"]\nreplications = 9\nhorizon = 77\n'
                    'instance = "paper-frequentist"\n')  # fmt: skip
    found = comparison_study([str(path)], ["tsde", "ucb1"])
    assert {case.settings.horizon for case in found.cases} == {77}
    assert {case.settings.horizon for case in comparison_study([str(path)], ["ucb1"], horizon=50)
            .cases} == {50}  # fmt: skip
    with pytest.raises(ProblemError, match="horizon on an instance of the zoo is not that of"):
        comparison_study([str(path), "satellite-urban-s"], ["tsde"])


OWN_STUDY = """
title = "x"
kind = "frequentist"
learners = ["ucb1", { name = "epsilon_greedy", epsilon = 0.2 }]
policy_mappings = ["myopic", "whittle"]
horizon = 20
replications = 3
seed = 5
[problem]
num_pulls = 1
[[problem.arm]]
p01 = 0.3
p11 = 0.7
count = 3
[prior]
levels = [0.3, 0.7]
"""


def test_what_a_study_says_holds_unless_an_option_says_otherwise(tmp_path, monkeypatch):
    """It ran all learners 200 times, whatever the file said."""
    monkeypatch.chdir(tmp_path)
    Path("own.toml").write_text(OWN_STUDY)
    told = []
    study = comparison_study(["own.toml"], tell=told.append)
    assert study.replications == 3
    assert {case.learner for case in study.cases} == {"ucb1", "epsilon_greedy(epsilon=0.2)"}
    assert {case.mapping for case in study.cases} == {"myopic", "whittle"}
    assert {case.settings.seed for case in study.cases} == {5}
    assert told == [
        "as own.toml says: learners ucb1, epsilon_greedy(epsilon=0.2); policy mappings myopic, "
        "whittle; replications 3; seed 5; options of this command override that"
    ]
    told.clear()
    given = comparison_study(["own.toml"], ["tsde"], "myopic", None, 4, 6, told.append)
    (case,) = given.cases
    assert (case.learner, case.mapping, case.settings.seed) == ("tsde", "myopic", 6)
    assert (given.replications, told) == (4, [])
    Path("bare.toml").write_text("\n".join(
        line for line in OWN_STUDY.splitlines()
        if not line.startswith(("learners", "replications", "policy", "seed"))
    ))  # fmt: skip
    bare = comparison_study(["bare.toml"], tell=told.append)
    assert (bare.replications, len(bare.cases) > 5) == (200, True)
    assert told == []


def test_studies_that_say_different_things_are_not_mixed(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("own.toml").write_text(OWN_STUDY)
    Path("other.toml").write_text(OWN_STUDY.replace("replications = 3", "replications = 4"))
    with pytest.raises(ProblemError, match=r"^own.toml and other.toml have different replications"):
        comparison_study(["own.toml", "other.toml"])
    assert comparison_study(["own.toml", "other.toml"], replications=2).replications == 2
    Path("own.toml").write_text(OWN_STUDY.replace("replications = 3", "replications = 1"))
    done = CliRunner().invoke(app, ["compare", "own.toml"])
    assert "a comparison takes at least 2 replications" in str(done.exception)


def test_a_comparison_of_a_problem_file_names_the_prior(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("grid.toml").write_text(SEEN.replace("'always'", "'pulled'"))
    Path("any.toml").write_text(SEEN)
    Path("own.toml").write_text(OWN_STUDY)
    begins = {
        "grid.toml": "a 9 x 9 grid of (p01, p11), each 0.1 to 0.9;",
        "any.toml": "any chances in every row, pulled and not",
        "own.toml": "",  # who writes a study says it there
    }
    for name, words in begins.items():
        options = ["--learners", "tsde,thompson_every_step", "--horizon", "20"]
        done = CliRunner().invoke(
            app, ["compare", name, *options, "--replications", "2", "--out", name[:3]]
        )
        page = html.unescape(Path(name[:3], "report.html").read_text(encoding="utf-8"))
        for shown in (" ".join(done.stdout.split()), page):
            assert (f"Learners with a prior begin with {words}" in shown) == bool(words)


@pytest.mark.parametrize("name", ["mean index", "Mean-Index", " MEAN_INDEX", "mean_index"])
def test_learners_are_named_as_tables_show_them(name):
    (case,) = comparison_study(["paper-frequentist"], [name]).cases
    assert case.learner == "mean_index"


def test_mappings_are_spelt_as_learners_are():
    (case,) = comparison_study(["paper-frequentist"], ["TSDE"], "Best Fixed").cases
    assert (case.learner, case.mapping) == ("tsde", "best_fixed")
    bandit = rs.zoo.load("paper-frequentist").bandit
    assert rs.evaluate(bandit, "Best-fixed") == rs.evaluate(bandit, "best_fixed")


def test_learners_are_separated_by_commas():
    with pytest.raises(ProblemError, match=r"^separate learners by commas, got 'tsde;ucb1'"):
        comparison_study(["paper-frequentist"], ["tsde;ucb1"])


def test_learners_are_named_with_options():
    found = comparison_study(["paper-frequentist"], ["tsde(draws=16)", "tsde"])
    named = [case.settings.learners[0] for case in found.cases]
    assert named == [{"name": "tsde", "draws": 16}, "tsde"]
    with pytest.raises(ProblemError, match="learner tsde: unknown option 'drawn'; did you mean"):
        comparison_study(["paper-frequentist"], ["tsde(drawn=16)"])


def test_two_curves_have_a_legend_in_axes_of_ones_own():
    from matplotlib.figure import Figure

    bandit, prior = rs.zoo.load("paper-frequentist").bandit, rs.grid_prior([0.2, 0.8], 4)
    figure = Figure()
    axes = figure.subplots()
    for learner in ("tsde", "thompson_every_step"):
        curve = rs.frequentist_regret(bandit, prior, horizon=30, learner=learner, replications=3)
        assert "(95%) at t = 30" in repr(curve)
        curve.plot(axes)
    figure.canvas.draw()
    box = axes.get_legend().get_window_extent()
    assert figure.bbox.contains(box.x0, box.y0)
    assert figure.bbox.contains(box.x1, box.y1)
