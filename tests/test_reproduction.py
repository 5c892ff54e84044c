"""`restive reproduce`: its claims, pictures and page; stopping it, going on, and bad options."""

import json
import re
import shlex
import shutil
import subprocess
import sys
import xml.etree.ElementTree as ET
from dataclasses import replace
from fnmatch import fnmatch
from functools import cache
from itertools import pairwise, product
from math import comb
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from PIL import Image
from scipy import stats
from typer.testing import CliRunner

import restive as rs
from restive.cli import app
from restive.measure.regret import recorded_times
from restive.paper import claims, theory_section
from restive.paper import page as paper_page
from restive.paper import runs as paper_runs
from restive.studies.ledger import Ledger
from restive.studies.runner import run_study
from restive.studies.spec import study_from_toml
from restive.studies.summary import Curve, Slope, load_results
from restive.studies.work import prepared
from test_report import Page, refused

REPLICATIONS = 60  # a slope needs 50
QUANTILE = stats.t.ppf(0.975, REPLICATIONS - 1)
FILES = {
    "bayesian", "frequentist", "claims.json", "reproduction.json", "report.html",
    "figure-2.png", "figure-2.svg", "figure-3.png", "figure-3.svg",
}  # fmt: skip
MAPPINGS = ("best_fixed", "myopic", "whittle")
BELOW = "How it was run"  # heading of the part that differs from run to run


def invoked(out, *words, seed=0, replications=REPLICATIONS):
    """Run the command in this process."""
    options = ["--replications", replications, "--seed", seed, "--out", out, *words]
    return CliRunner().invoke(app, ["reproduce", *map(str, options)], catch_exceptions=False)


@cache
def whole_run(base):
    """Run it once for all tests of a process; what `decompose_regret` found is kept."""
    folder, seen = base / "reproduced", []

    def spied(*arguments, **options):
        seen.append((arguments, options, decompose(*arguments, **options)))
        return seen[0][2]

    decompose = theory_section.decompose_regret
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(theory_section, "decompose_regret", spied)
        result = invoked(folder, "--threads", 1)
    (decomposed,) = seen
    return SimpleNamespace(
        folder=folder,
        result=result,
        claims=json.loads((folder / "claims.json").read_text()),
        theory=json.loads((folder / "reproduction.json").read_text())["theory"],
        html=(folder / "report.html").read_text(encoding="utf-8"),
        decomposed=decomposed,
    )


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    """Return a complete run."""
    return whole_run(tmp_path_factory.getbasetemp())


@pytest.fixture
def copied(whole, tmp_path):
    """Return a copy of the folder of a complete run."""
    return Path(shutil.copytree(whole.folder, tmp_path / "copy"))


@pytest.fixture
def fast(whole, monkeypatch):
    """Leave out pictures and the theory's numbers where they do not matter; count replications."""
    asked = []

    def known(bayesian, frequentist, replications, seed):
        asked.append(replications)
        return whole.theory

    monkeypatch.setattr(paper_runs, "theory_numbers", known)
    without_charts(monkeypatch)
    return asked


def without_charts(monkeypatch):
    monkeypatch.setattr(paper_page, "page_figures", lambda bayesian, frequentist: [])
    monkeypatch.setattr(paper_page, "write_figures", lambda bayesian, frequentist, folder: None)


def require_whole_files(folder):
    """Check that every file below its final name is whole, and that nothing else is there."""
    seen = set()
    for path in folder.rglob("*"):
        assert not path.name.startswith("."), f"left over: {path}"
        seen.add(path.suffix)
        if path.suffix == ".json":
            json.loads(path.read_text(encoding="utf-8"))
        elif path.suffix == ".svg":
            ET.parse(path)
        elif path.suffix == ".png":
            contents = path.read_bytes()
            assert contents.startswith(b"\x89PNG\r\n\x1a\n")
            assert contents.endswith(b"IEND\xaeB\x60\x82")
        elif path.suffix == ".html":
            Page(path.read_text(encoding="utf-8"))
    return seen


def test_what_a_run_leaves_behind(whole):
    assert whole.result.exit_code == 0
    assert {path.name for path in whole.folder.iterdir()} == FILES
    assert require_whole_files(whole.folder) >= {".json", ".svg", ".png", ".html", ".chunk"}
    for name in ("figure-2", "figure-3"):
        with Image.open(whole.folder / f"{name}.png") as image:
            image.load()
            assert image.width > 1500
            assert len(image.convert("RGB").getcolors(1 << 24)) > 20
        drawing = ET.parse(whole.folder / f"{name}.svg").getroot()
        assert drawing.tag == "{http://www.w3.org/2000/svg}svg"


def table_in(text):
    """Return the rows of a table in the terminal; a cell may go over several lines."""
    rows = []
    for line in text.splitlines():
        if not line.startswith("│"):
            continue
        cells = [cell.strip() for cell in line.split("│")[1:-1]]
        if cells[-1]:
            rows.append(cells)
        else:
            rows[-1] = [f"{old} {new}".strip() for old, new in zip(rows[-1], cells, strict=True)]
    return rows


def test_the_claims_are_told_in_the_terminal_the_file_and_the_page(whole):
    keys = ("claim", "paper", "ours", "verdict")
    rows = [[claim[key] for key in keys] for claim in whole.claims]
    assert len(rows) == 21
    assert table_in(whole.result.stdout) == rows
    assert whole.result.stdout.endswith(
        f"0 of 21 claims fail; the report: {whole.folder / 'report.html'}\n"
    )
    page = Page(whole.html)
    places = list(dict.fromkeys(claim["place"] for claim in whole.claims))
    tables = page.tables[: len(places)]
    assert all(table[0] == ["claim", "paper", "here", "verdict"] for table in tables)
    assert [row for table in tables for row in table[1:]] == rows
    for place, table in zip(places, tables, strict=True):
        assert len(table) - 1 == sum(claim["place"] == place for claim in whole.claims)
        assert f"<summary>{place} <small>{len(table) - 1} of {len(table) - 1} claims hold" in (
            whole.html)  # fmt: skip
    assert page.headings[0] == ["h1", "21 of 21 claims hold."]
    assert {row[3] for row in rows} == {"holds"}
    assert "<details open>" not in whole.html  # nothing failed


def test_a_claim_that_fails_is_told_and_is_the_exit_status(copied, fast, monkeypatch):
    monkeypatch.setitem(claims.PAPER_FREQUENTIST_J, "whittle", 1.2)
    result = invoked(copied)
    assert result.exit_code == 1
    assert "1 of 21 claims fail" in result.stdout
    (failed,) = [row for row in table_in(result.stdout) if row[-1] == "fails"]
    assert failed == ["J of the mapping 'Whittle index'", "1.20", "1.119088 (exact)", "fails"]
    stored = json.loads((copied / "claims.json").read_text())
    assert [claim["paper"] for claim in stored if claim["verdict"] == "fails"] == ["1.20"]
    text = (copied / "report.html").read_text(encoding="utf-8")
    assert '<td class="fails" data-label="verdict">fails</td>' in text
    assert Page(text).headings[0] == ["h1", "20 of 21 claims hold; 1 fails."]
    (unfolded,) = re.findall(r"<details open><summary>([^<]*) <small>([^<]*)", text)
    assert unfolded == ("Section 6, frequentist", "2 of 3 claims hold; 1 fails")
    monkeypatch.undo()
    assert {claim["verdict"] for claim in stored} == {"holds", "fails"}


@pytest.mark.parametrize(
    ("verdicts", "sentence"),
    [
        (["holds", "holds"], "2 of 2 claims hold."),
        (["holds", "fails"], "1 of 2 claims hold; 1 fails."),
        (["fails", "fails", "undecided"], "0 of 3 claims hold; 2 fail, 1 is undecided."),
        (["holds", "undecided", "undecided"], "1 of 3 claims hold; 2 are undecided."),
    ],
)
def test_the_headline_counts_claims(verdicts, sentence):
    made = [claims.Claim("p", "c", "x", "y", verdict) for verdict in verdicts]
    assert paper_page._verdict(made) == sentence


# The numbers, found in a second way


@pytest.fixture(scope="module")
def runs(whole):
    """Return the arrays of each study and mapping, all replications together."""
    found = {}
    for name in ("bayesian", "frequentist"):
        ledger = Ledger.open(whole.folder / name)
        for case in ledger.study.cases:
            parts = [arrays for _, arrays in ledger.chunks(case)]
            joined = {key: np.concatenate([part[key] for part in parts]) for key in parts[0]}
            times = recorded_times(case.settings.times, case.settings.horizon)
            found[name, case.mapping] = SimpleNamespace(case=case, times=times, **joined)
    return found


def ours(whole, claim):
    (found,) = [one["ours"] for one in whole.claims if one["claim"] == claim]
    return found


def mean_of_best(num_arms, num_best):
    """E J of the best fixed arms: the law of each order statistic of stationary rewards."""
    grid = [k / 10 for k in range(1, 10)]
    rewards = np.array([p01 / (p01 + 1 - p11) for p01, p11 in product(grid, grid)])
    points = np.unique(rewards.round(12))
    below = np.array([(rewards <= x + 1e-9).mean() for x in points])
    total = 0.0
    for rank in range(num_arms - num_best, num_arms):  # how many lie below it
        # P(the rank-th smallest <= x): more than `rank` of the draws are
        law = sum(
            comb(num_arms, j) * below**j * (1 - below) ** (num_arms - j)
            for j in range(rank + 1, num_arms + 1)
        )
        total += (np.diff(law, prepend=0) * points).sum()
    return total


def test_the_mean_over_drawn_systems_of_the_best_fixed_arms(whole, runs):
    exact = mean_of_best(8, 3)
    assert exact == pytest.approx(2.067048, abs=5e-7)
    found = runs["bayesian", "best_fixed"]
    _, task, _ = prepared(found.case.settings.to_json())
    best = []
    for kinds in found.true_kinds:
        levels = [(arm.active[0, 1], arm.active[1, 1]) for arm in task.bandit_of(kinds).arms]
        best.append(sum(sorted(p01 / (p01 + 1 - p11) for p01, p11 in levels)[-3:]))
    mean, stderr = np.mean(best), np.std(best, ddof=1) / np.sqrt(REPLICATIONS)
    assert abs(mean - exact) < 4.5 * stderr
    value, half = map(float, ours(whole, "E J of the mapping 'best fixed arms'").split(" ± "))
    assert value == pytest.approx(mean, abs=6e-4)
    assert half == pytest.approx(QUANTILE * stderr, rel=0.02)


def test_the_other_means_are_of_what_the_policy_earned_late(whole, runs):
    late = {"best_fixed": None}
    for mapping, name in (("myopic", "myopic"), ("whittle", "Whittle index")):
        found = runs["bayesian", mapping]
        half = found.times[found.times <= 1000].max()
        earned = found.oracle_expected[:, -1] - found.oracle_expected[:, found.times == half][:, 0]
        late[mapping] = earned / (2000 - half)
        value, _ = map(float, ours(whole, f"E J of the mapping '{name}'").split(" ± "))
        assert value == pytest.approx(late[mapping].mean(), abs=6e-4)
    gains = late["whittle"] - late["myopic"]
    shown = ours(whole, "E J: 'Whittle index' above 'myopic'")
    value, half = map(float, re.findall(r"[\d.]+", shown))
    assert value == pytest.approx(gains.mean(), abs=6e-5)
    assert half == pytest.approx(QUANTILE * gains.std(ddof=1) / np.sqrt(REPLICATIONS), rel=0.05)


def test_the_exact_figures(whole):
    values = {"best_fixed": 1.0, "myopic": 1.0912173602, "whittle": 1.1190875224}
    names = {"best_fixed": "best fixed arms", "myopic": "myopic", "whittle": "Whittle index"}
    for found in load_results(whole.folder / "frequentist"):
        exact = values[found.case.mapping]
        assert found.truth_reward == (pytest.approx(exact, abs=1e-9), 0)
        shown = ours(whole, f"J of the mapping '{names[found.case.mapping]}'")
        assert shown == f"{exact:.6f} (exact)"


def test_slopes_are_those_of_polyfit(whole, runs):
    names = {"best_fixed": "best fixed arms", "myopic": "myopic", "whittle": "Whittle index"}
    for mapping, name in names.items():
        found = runs["bayesian", mapping]
        regret = (found.oracle_expected - found.expected).mean(axis=0)
        late = found.times >= 200
        slope = np.polyfit(np.log(found.times[late]), np.log(regret[late]), 1)[0]
        shown = ours(whole, f"regret grows sub-linearly ('{name}')")
        assert shown.startswith(f"slope {slope:.3f} [")


def test_the_curves_are_those_of_the_library(whole):
    levels = [k / 10 for k in range(1, 10)]
    for found in load_results(whole.folder / "bayesian"):
        curve = rs.bayesian_regret(
            rs.grid_prior(levels, 8), 3, found.case.mapping, 2000, replications=REPLICATIONS,
            times=found.times, threads=1,
        )  # fmt: skip
        assert found.regret.mean == pytest.approx(curve.mean, abs=1e-9)
        assert found.regret.stderr == pytest.approx(curve.stderr)
        assert found.num_episodes.mean == pytest.approx(curve.num_episodes)
        assert found.replications == REPLICATIONS


def test_gaps_to_the_exact_rewards(whole, runs):
    found = runs["frequentist", "whittle"]
    gaps = 100 * (1 - found.expected[:, -1] / 10_000 / 1.1190875224)
    shown = ours(whole, "reward per step comes within 1% of J ('Whittle index')")
    value, half = map(float, re.findall(r"-?[\d.]+", shown)[:2])
    assert value == pytest.approx(gaps.mean(), abs=6e-3)
    assert half == pytest.approx(QUANTILE * gaps.std(ddof=1) / np.sqrt(REPLICATIONS), rel=0.05)


def test_the_figures_show_both_experiments(whole, copied, monkeypatch):
    figures = {}

    def kept(figure, stem):
        figures[Path(stem).name] = figure
        return []

    monkeypatch.setattr(paper_page, "write_figure", kept)
    monkeypatch.setattr(paper_page, "page_figures", lambda bayesian, frequentist: [])
    paper_page.write_page(copied)
    bayesian, frequentist = (load_results(copied / name) for name in ("bayesian", "frequentist"))

    def lines(axes):
        return [line.get_ydata() for line in axes.lines if line.get_marker() != "None"
                and len(line.get_ydata())]  # fmt: skip

    left, right = figures["figure-2"].axes
    for axes in (left, right):
        assert all(map(np.array_equal, lines(axes), [found.regret.mean for found in bayesian]))
        assert len(lines(axes)) == 3
    assert right.get_yscale() == "log"
    left, right = figures["figure-3"].axes
    assert len(lines(left)) == 3
    means = [found.average_reward.mean for found in frequentist]
    assert all(map(np.array_equal, lines(left), means))
    weights = frequentist[2].truth_weights.mean.T
    assert frequentist[2].case.mapping == "whittle"
    assert len(lines(right)) == 4
    assert all(map(np.array_equal, lines(right), weights))


# The theory


def test_regret_is_taken_apart_as_the_library_does(whole):
    (prior, num_pulls, mapping, horizon), options, parts = whole.decomposed
    replications, seed = options["replications"], options["seed"]
    assert (prior.num_arms, num_pulls, mapping, horizon) == (3, 1, "whittle", 200)
    assert (replications, seed) == (REPLICATIONS, 0)
    theory = whole.theory
    terms = (parts.sampling_regret, parts.switching_regret, parts.transition_regret,
             parts.reward_regret, parts.regret)  # fmt: skip
    for (name, mean, stderr), values in zip(theory["terms"], terms, strict=True):
        assert name.startswith("R")
        assert mean == pytest.approx(values.mean())
        assert stderr == pytest.approx(values.std(ddof=1) / np.sqrt(REPLICATIONS))
    assert np.abs(parts.regret - sum(terms[:4])).max() == pytest.approx(theory["identity_error"])
    assert theory["identity_error"] < 1e-9
    assert theory["bellman_residual"] < 1e-9
    assert sum(mean for _, mean, _ in theory["terms"][:4]) == pytest.approx(theory["terms"][4][1])
    rows = {name: row for name, *row in theory["comparisons"]}
    episodes = parts.num_episodes.mean()
    for name, values, bound in (
        ("R_0, at most N E M_T", parts.sampling_regret, episodes),
        ("R_1, at most H E M_T", parts.switching_regret, parts.bias_spans.max() * episodes),
        ("episodes M_T", parts.num_episodes, parts.bounds.episodes),
        ("regret", parts.regret, parts.bounds.regret),
    ):
        measured, stderr, allowed, ratio = rows[name]
        assert measured == pytest.approx(values.mean())
        assert allowed == pytest.approx(bound)
        assert ratio == pytest.approx(measured / bound)
        assert measured - 5 * stderr <= allowed
    assert theory["num_systems"] == len(parts.systems) == 64
    assert theory["replications"] == REPLICATIONS


def test_spans_of_discounted_values_approach_that_of_the_bias(whole, paper_bandit):
    span = rs.evaluate(paper_bandit, rs.whittle(paper_bandit)).bias_span
    assert whole.theory["bias_span"] == span
    gaps = [span - found for _, found in whole.theory["spans"]]
    betas = [beta for beta, _ in whole.theory["spans"]]
    assert betas == sorted(betas)
    assert betas[-1] > 0.9999
    assert all(gap > 0 for gap in gaps)
    # linearly in 1 - beta: each row is ten times closer than the one before
    nearing = [after / before for before, after in pairwise(gaps[1:])]
    assert nearing == pytest.approx([0.1] * 3, rel=0.05)
    assert gaps[-1] < 1e-5 * span


def test_the_bounds_are_those_of_the_paper(whole):
    rows = whole.theory["settings"]
    assert [(row["kind"], row["mapping"]) for row in rows] == [
        *product(["bayesian"], MAPPINGS), *product(["frequentist"], MAPPINGS),
    ]  # fmt: skip
    results = [
        *load_results(whole.folder / "bayesian"), *load_results(whole.folder / "frequentist")
    ]  # fmt: skip
    span = whole.theory["bias_span"]
    sizes = {"bayesian": (16, 3, 2000, 0.0), "frequentist": (8, 2, 10_000, span)}
    for row, found in zip(rows, results, strict=True):
        states, pulls, horizon, span = sizes[row["kind"]]
        mixing = np.log2(horizon) * 7  # T^mix, Section 6's grid
        first = 2 * (span + pulls) * np.sqrt(states * mixing * horizon * np.log(pulls * horizon))
        second = 28 * (span + 1) * states * np.sqrt(
            pulls * mixing * horizon * np.log(mixing * horizon)
        )  # fmt: skip
        assert row["bound"] == pytest.approx(first + second)
        assert row["most"] == pulls * horizon
        assert row["regret"] == [found.regret.mean[-1], found.regret.stderr[-1]]
        assert row["episodes"] == found.num_episodes.mean[-1]
        printed = 2 * np.sqrt(states * mixing * horizon * np.log(pulls * horizon))
        assert row["episode_bound_as_printed"] == pytest.approx(printed)
        counters = states * np.ceil(mixing)
        macro = 1 + counters * np.log2(1 + pulls * horizon / counters)
        assert row["episode_bound"] == pytest.approx(np.sqrt(2 * macro * horizon))
        assert row["episodes"] < row["episode_bound"]


def test_the_theory_is_on_the_page(whole):
    page, theory = Page(whole.html), whole.theory
    by_header = {tuple(table[0]): table[1:] for table in page.tables}
    (rows,) = [rows for header, rows in by_header.items() if header[0] == "setting"]
    for row, known in zip(rows, theory["settings"], strict=True):
        assert row[0] == f"{known['kind']}, {known['mapping'].replace('_', ' ')}"
        assert float(row[1].replace(",", "")) == pytest.approx(known["bound"], abs=0.51)
        assert row[2] == f"{known['most']:,}"
        assert float(row[3].split(" ± ")[0]) == pytest.approx(known["regret"][0], abs=0.51)
        assert float(row[4]) == pytest.approx(known["regret"][0] / known["bound"], rel=0.05)
        assert float(row[7]) == pytest.approx(known["episodes"] / known["episode_bound"], abs=0.006)
    spans = by_header["discount", "span of v"]
    assert [float(row[1]) for row in spans[:-1]] == pytest.approx(
        [span for _, span in theory["spans"]], abs=1e-6
    )
    assert float(spans[-1][1]) == pytest.approx(theory["bias_span"], abs=1e-6)
    bounds = by_header["", "measured", "bound", "ratio"]
    for row, (name, _, _, bound, ratio) in zip(bounds, theory["comparisons"], strict=True):
        assert row[0] == name
        assert float(row[2].replace(",", "")) == pytest.approx(bound, rel=1e-3)
        assert float(row[3]) == pytest.approx(ratio, rel=1e-2)
    terms = by_header["part", "mean"]
    assert [row[0] for row in terms] == [name for name, _, _ in theory["terms"]]


# The page


def test_the_page_has_its_sections_and_needs_nothing_else(whole):
    page = Page(whole.html)  # checks tags, ids, links, and that nothing is loaded or run
    titles = [text for tag, text in page.headings if tag == "h2"]
    assert titles == [
        "Figure 2: Bayesian regret of TSDE",
        "How fast does it grow?",
        "Figure 3, left: one system, reward per step",
        "Figure 3, right: weight of the true (p01, p11)",
        "The claims, by their place in the paper",
        "What differs from the paper, and why",
        "The theory beside the measurements",
        "All results, and how to run it again",
    ]
    assert page.tags["figure"] == 4
    assert page.tags["h1"] == 1
    for study in ("bayesian", "frequentist"):
        results = load_results(whole.folder / study)
        (table,) = [
            table[1:] for table in page.tables
            if table[0][0] == "mapping" and f"{results[0].num_episodes.mean[-1]:.0f}"
            in table[1][-1]
        ]  # fmt: skip
        for row, found in zip(table, results, strict=True):
            value, half = map(float, row[table_column("regret")].split(" ± "))
            assert value == pytest.approx(found.regret.mean[-1], abs=half / 10)
            assert half == pytest.approx(QUANTILE * found.regret.stderr[-1], rel=0.05)
            assert row[1] == str(REPLICATIONS)


def table_column(name):
    columns = ("mapping", "replications", "J", "reward per step", "regret", "slope", "episodes")
    return columns.index(name)


def test_the_page_says_how_it_was_run_and_how_to_run_it_again(whole):
    page = Page(whole.html)
    manifests = [Ledger.open(whole.folder / name).manifest for name in ("bayesian", "frequentist")]
    facts = [dict(table[1:]) for table in page.tables if table[0] == ["", ""]]
    for known, manifest in zip(facts, manifests, strict=True):
        assert known["study"] == manifest["title"]
        assert known["seed"] == "0"
        assert known["replications of each case"] == str(REPLICATIONS)
        assert known["machine"] == manifest["machine"]
        assert known["begun"] == manifest["begun"]
        assert f"numpy {np.__version__}" in known["versions"]
        assert known["restive"].startswith(rs.__version__)
        assert re.match(r"\d+\.\d s in 1 run", known["time taken"])
    *specs, command = page.codes
    for spec, manifest in zip(specs, manifests, strict=True):
        again = study_from_toml(spec)
        assert (again.data, again.title) == (manifest["study"], manifest["title"])
    assert shlex.split(command) == [
        "restive", "reproduce", "--replications", "60", "--seed", "0", "--out", str(whole.folder),
    ]  # fmt: skip


def test_the_command_to_run_again_survives_a_space(whole, fast, tmp_path):
    folder = Path(shutil.copytree(whole.folder, tmp_path / "a b"))
    paper_page.write_page(folder)
    command = Page((folder / "report.html").read_text(encoding="utf-8")).codes[-1]
    assert shlex.split(command)[-1] == str(folder)


def without_pictures(text):
    return re.sub(r'<div class="beside">.*?</section>\s*</div>\s*', "", text, flags=re.S)


def test_report_writes_the_page_again(whole, copied, fast, tmp_path):
    target = tmp_path / "again.html"
    result = CliRunner().invoke(app, ["report", str(copied), "--out", str(target)])
    assert (result.exit_code, result.stdout) == (0, f"{target}\n")
    again = without_pictures(target.read_text(encoding="utf-8"))
    assert again == without_pictures(whole.html).replace(str(whole.folder), str(copied))


def rendered(copied, monkeypatch, change):
    """Return the words of the page, with the results of a study changed."""
    found = {name: load_results(copied / name) for name in ("bayesian", "frequentist")}
    changed = {name: [change(name, one) for one in cases] for name, cases in found.items()}
    monkeypatch.setattr(paper_page, "load_results", lambda folder: changed[Path(folder).name])
    paper_page.write_page(copied)
    return Page((copied / "report.html").read_text(encoding="utf-8")).text


def test_the_differences_do_not_say_what_the_data_do_not(copied, fast, monkeypatch):
    """Each sentence about a result goes with the result."""

    def as_found(name, one):
        return one

    def fast_growing(name, one):
        return replace(one, slope=Slope(0.9, 0.85, 0.95, 200, 2000))

    def not_fitted(name, one):
        return replace(one, slope=None)

    def far_off(name, one):
        return one if name == "frequentist" else replace(one, truth_rewards=one.truth_rewards + 1)

    def falling(name, one):
        if one.truth_weights is None:
            return one
        mean = one.truth_weights.mean[::-1]
        return replace(
            one, truth_weights=Curve(mean, one.truth_weights.stderr[::-1], one.replications)
        )

    usual = rendered(copied, monkeypatch, as_found)
    sentences = ("slower than the square root", "ours lie within", "They rise throughout")
    assert all(sentence in usual for sentence in sentences)
    wrong = {}
    for change, sentence in (
        (fast_growing, "slower than the square root"),
        (not_fitted, "slower than the square root"),
        (far_off, "ours lie within"),
        (falling, "They rise throughout"),
    ):
        monkeypatch.undo()
        without_charts(monkeypatch)
        wrong[change.__name__] = sentence in rendered(copied, monkeypatch, change)
    assert wrong == dict.fromkeys(wrong, False)


# The same numbers every time


STOPPED = """
import os, signal, sys
from restive.studies.ledger import Ledger
from restive.cli import main

def write(self, task, arrays, kept=Ledger.write, written=[]):
    kept(self, task, arrays)
    written.append(task)
    if len(written) == 2:
        os.kill(os.getpid(), signal.SIGINT)

Ledger.write = write
sys.argv = ["restive", *sys.argv[1:]]
main()
"""


@pytest.fixture(scope="module")
def resumed(whole, tmp_path_factory):
    """Return a run with two threads, stopped while it ran and while it drew, then completed."""
    out = tmp_path_factory.mktemp("resumed") / "out"
    words = [
        "reproduce",
        "--replications",
        "60",
        "--seed",
        "0",
        "--out",
        str(out),
        "--threads",
        "2",
    ]
    first = subprocess.run(
        [sys.executable, "-c", STOPPED, *words], capture_output=True, text=True, check=False
    )
    after_first = sorted(path.name for path in out.iterdir())
    require_whole_files(out)
    chunks = {path: path.stat().st_mtime_ns for path in out.rglob("*.chunk")}
    with pytest.MonkeyPatch.context() as patch:
        from matplotlib.figure import Figure

        def savefig(figure, target, *, kept=Figure.savefig, **options):
            if options["format"] == "png" and "figure-2" in str(target):
                Path(target).write_bytes(b"\x89PNG half of it")
                raise KeyboardInterrupt
            kept(figure, target, **options)

        patch.setattr(Figure, "savefig", savefig)
        patch.setattr(paper_runs, "theory_numbers", lambda *arguments: whole.theory)
        try:
            second = invoked(out, "--threads", 2)
        except KeyboardInterrupt:
            pytest.fail("Ctrl-C is not caught")
    after_second = sorted(path.name for path in out.iterdir())
    require_whole_files(out)
    third = invoked(out, "--threads", 2)
    return SimpleNamespace(
        folder=out, first=first, second=second, third=third, chunks=chunks,
        after_first=after_first, after_second=after_second,
    )  # fmt: skip


def test_ctrl_c_keeps_what_is_whole_and_says_how_to_go_on(resumed):
    assert resumed.first.returncode == 130
    assert resumed.first.stdout == ""
    expected = (
        f"restive: stopped; what is done is kept in {resumed.folder}, and the same command "
        "continues from there\n"
    )
    assert resumed.first.stderr == expected
    assert resumed.after_first == ["bayesian"]
    assert len(resumed.chunks) == 2
    assert resumed.second.exit_code == 130
    assert resumed.second.stderr == expected
    assert set(resumed.after_second) == {"bayesian", "frequentist", "claims.json",
                                         "reproduction.json"}  # fmt: skip


def test_the_same_command_then_completes(whole, resumed):
    assert resumed.third.exit_code == 0
    assert table_in(resumed.third.stdout) == table_in(whole.result.stdout)
    assert {path.name for path in resumed.folder.iterdir()} == FILES
    require_whole_files(resumed.folder)
    kept = {path: path.stat().st_mtime_ns for path in resumed.chunks}
    assert kept == resumed.chunks  # nothing was run twice


def test_neither_threads_nor_interruptions_change_a_number(whole, resumed):
    names = FILES - {"bayesian", "frequentist", "report.html"}
    chunks = [path.relative_to(whole.folder) for path in whole.folder.rglob("*.chunk")]
    assert len(chunks) == 6
    for name in [*names, *chunks]:
        assert (resumed.folder / name).read_bytes() == (whole.folder / name).read_bytes(), name
    text = (resumed.folder / "report.html").read_text(encoding="utf-8")
    head, tail = whole.html.split(BELOW)
    assert text.split(BELOW)[0] == head
    assert len(head) > 50_000

    def timeless(page):
        page = re.sub(r"<td>(begun|time taken)</td><td>[^<]*</td>", r"\1", page)
        return re.sub(r"--out [^<]*", "--out", page)

    assert timeless(text.split(BELOW)[1]) == timeless(tail)
    manifests = [
        Ledger.open(resumed.folder / name).manifest for name in ("bayesian", "frequentist")
    ]
    assert [len(manifest["runs"]) for manifest in manifests] == [2, 1]


def test_another_seed_gives_other_numbers(whole, fast, tmp_path):
    result = invoked(tmp_path / "out", seed=1)
    assert result.exit_code in (0, 1)  # about one seed in twenty has a mean outside its interval
    found = json.loads((tmp_path / "out" / "claims.json").read_text())
    same = [
        one["claim"] for one, known in zip(found, whole.claims, strict=True)
        if one["ours"] == known["ours"]
    ]  # fmt: skip
    exact = [f"J of the mapping '{name}'" for name in ("best fixed arms", "myopic",
                                                        "Whittle index")]  # fmt: skip
    assert same == exact


# More or fewer replications in the same folder


def test_more_replications_keep_those_that_are_there(copied, fast):
    chunks = {path: path.read_bytes() for path in copied.rglob("*.chunk")}
    result = invoked(copied, replications=62)
    assert result.exit_code == 0
    assert fast == [62]
    assert all(path.read_bytes() == contents for path, contents in chunks.items())
    assert {found.replications for found in load_results(copied / "frequentist")} == {62}
    page = Page((copied / "report.html").read_text(encoding="utf-8"))
    assert "--replications 62 " in page.codes[-1]
    assert "with 62 replications of each experiment" in page.text


def test_fewer_replications_do_not_mix_two_sizes_on_a_page(copied, fast):
    """What is there stays, and the page is that of the command which it names."""
    result = invoked(copied, replications=50)
    assert result.exit_code == 0
    page = Page((copied / "report.html").read_text(encoding="utf-8"))
    assert "--replications 60 " in page.codes[-1]
    assert "with 60 replications of each experiment" in page.text
    assert fast == [60]


def stopped_while_growing(copied):
    """Ask for two more replications, and stop when one mapping of the first study has them."""

    def stop(progress):
        if progress.done:
            raise KeyboardInterrupt

    study = replace(paper_runs.paper_study("bayesian"), replications=62)
    with pytest.raises(KeyboardInterrupt):
        run_study(study, copied / "bayesian", executor="serial", progress=stop)
    counts = [found.replications for found in load_results(copied / "bayesian")]
    assert counts == [62, 60, 60]


def test_report_of_a_run_that_was_stopped_while_growing_is_no_crash(copied, fast):
    stopped_while_growing(copied)
    result = CliRunner().invoke(app, ["report", str(copied)])
    assert result.exception is None or isinstance(result.exception, rs.RestiveError)


def test_a_page_counts_the_replications_of_both_experiments(copied, fast):
    """Stopped while growing, then asked for as many as before: one study has more."""
    stopped_while_growing(copied)
    assert invoked(copied, replications=60).exit_code == 0
    page = Page((copied / "report.html").read_text(encoding="utf-8"))
    (wanted,) = re.findall(r"with (\d+) replications of each experiment", page.text)
    counts = [
        found.replications for name in ("bayesian", "frequentist")
        for found in load_results(copied / name)
    ]  # fmt: skip
    assert counts == [int(wanted)] * 6


# Options


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (["--replications", "0"], "Invalid value for '--replications'"),
        (["--replications", "-5"], "Invalid value for '--replications'"),
        (["--replications", "1"], "Invalid value for '--replications'"),
        (["--replications", "many"], "Invalid value for '--replications'"),
        (["--replications", "2.5"], "Invalid value for '--replications'"),
        (["--threads", "0"], "Invalid value for '--threads'"),
        (["--threads", "-1"], "Invalid value for '--threads'"),
        (["--seed", "-1"], "Invalid value for '--seed'"),
        (["--seed", "x"], "Invalid value for '--seed'"),
        (["--sed", "1"], "No such option"),
    ],
)
def test_a_bad_option_is_a_sentence_and_status_two(monkeypatch, tmp_path, words, sentence):
    monkeypatch.chdir(tmp_path)
    result = CliRunner().invoke(app, ["reproduce", *words], catch_exceptions=False)
    assert result.exit_code == 2
    assert result.stdout == ""
    assert sentence in result.stderr
    assert "Traceback" not in result.stderr
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("words", [["--seed", 2**63], ["--replications", 10**20]])
def test_a_number_that_is_too_large_is_a_line_and_leaves_nothing(
    capsys, monkeypatch, tmp_path, words
):
    monkeypatch.chdir(tmp_path)
    line = refused(capsys, monkeypatch, "reproduce", *words)
    assert words[0].strip("-") in line
    assert list(tmp_path.iterdir()) == []


def test_a_folder_that_cannot_be_used_is_a_line(capsys, monkeypatch, tmp_path):
    (tmp_path / "file").write_text("mine")
    for out in (tmp_path / "file", tmp_path / "file" / "below" / "it"):
        line = refused(capsys, monkeypatch, "reproduce", "--out", out)
        assert line == f"restive: {out}: cannot be used: Not a directory\n"
    assert (tmp_path / "file").read_text() == "mine"


@pytest.mark.parametrize(
    "name", ["notes.txt", "frequentist/notes.txt", "bayesian/notes.txt", "manifest.json"]
)
def test_a_folder_with_something_else_is_left_as_it_is(capsys, monkeypatch, tmp_path, name):
    mine = tmp_path / "out" / name
    mine.parent.mkdir(parents=True)
    mine.write_text("{}")
    line = refused(capsys, monkeypatch, "reproduce", "--out", tmp_path / "out", "--replications", 2)
    assert "holds something else already; name a new or an empty folder" in line
    assert [path for path in tmp_path.rglob("*") if path.is_file()] == [mine]
    assert mine.read_text() == "{}"


def test_another_seed_in_the_same_folder_is_refused_and_shown(copied, fast):
    before = {path: path.read_bytes() for path in copied.rglob("*") if path.is_file()}
    with pytest.raises(rs.RestiveError) as caught:
        invoked(copied, seed=7)
    first, difference = str(caught.value).splitlines()
    assert first.startswith(f"{copied / 'bayesian'}: holds another study")
    assert difference.strip() == "seed: 0 there, 7 in this study"
    after = {path: path.read_bytes() for path in copied.rglob("*") if path.is_file()}
    assert {path for path in after if path.name != "lock" and after[path] != before[path]} == set()
    assert after.keys() == before.keys()


def test_without_matplotlib_it_is_told_before_anything_runs(tmp_path):
    words = ["reproduce", "--out", str(tmp_path / "out")]
    script = (
        "import sys\n"
        "class Blocker:\n"
        "    def find_spec(self, name, path=None, target=None):\n"
        "        if name.split('.')[0] == 'matplotlib':\n"
        "            raise ModuleNotFoundError(name)\n"
        "sys.meta_path.insert(0, Blocker())\n"
        f"sys.argv = ['restive', *{words!r}]\n"
        "from restive.cli import main\n"
        "main()\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=False
    )
    assert done.returncode == 2
    assert done.stdout == ""
    assert done.stderr == "restive: pictures need matplotlib: pip install 'restive[plot]'\n"
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("words", "folder", "replications", "seed", "threads"),
    [
        ([], "reproduction", 4000, 0, None),
        (["--quick"], "reproduction-quick", 200, 0, None),
        (["--quick", "--replications", "70", "--seed", "4"], "reproduction-quick", 70, 4, None),
        (["--out", "here", "--threads", "3"], "here", 4000, 0, 3),
    ],
)
def test_defaults(monkeypatch, tmp_path, words, folder, replications, seed, threads):
    asked = []

    def reproduce(out, **options):
        asked.append((out, options["replications"], options["seed"], options["workers"]))
        return paper_runs.Reproduction([], out / "report.html")

    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(paper_runs, "reproduce", reproduce)
    result = CliRunner().invoke(app, ["reproduce", *words], catch_exceptions=False)
    assert result.exit_code == 0
    assert asked == [(Path(folder), replications, seed, threads)]


def test_an_unfinished_reproduction_has_no_page_yet_and_says_so(capsys, monkeypatch, tmp_path):
    (tmp_path / "bayesian").mkdir()
    line = refused(capsys, monkeypatch, "report", tmp_path)
    assert str(tmp_path) in line


def test_a_marker_that_is_damaged_is_a_line(capsys, monkeypatch, copied):
    (copied / "reproduction.json").write_text("{")
    line = refused(capsys, monkeypatch, "report", copied)
    assert line.endswith("damaged; run `restive reproduce` again\n")


def test_the_package_is_not_among_what_git_ignores(pytestconfig):
    """The output folders of the command are; hatch leaves what git ignores out of a wheel."""
    root = pytestconfig.rootpath
    ignored = (root / ".gitignore").read_text(encoding="utf-8").split()
    assert {"/reproduction/", "/reproduction-quick/", "/results/"} <= set(ignored)
    anywhere = [pattern.strip("/") for pattern in ignored if not pattern.startswith("/")]
    sources = [path.relative_to(root) for path in (root / "src").rglob("*.[pt]*")]
    sources = [path for path in sources if "__pycache__" not in path.parts]
    assert len(sources) > 50
    for path in sources:
        assert not [part for part in path.parts if any(fnmatch(part, p) for p in anywhere)], path
