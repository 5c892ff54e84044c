"""What all commands share: tables of any width, words for sizes, completion; and `restive init`."""

import io
import json
import re
import subprocess
import sys
from pathlib import Path

import pytest
from rich.console import Console
from typer.testing import CliRunner

import restive as rs
from restive import arguments
from restive.cli import app, completion, main, tables
from restive.cli.progress import _told_apart
from restive.paper.comparison_study import comparison_study
from restive.studies.spec import study_from_toml

RESTIVE = Path(sys.executable).with_name("restive")


def run(*words):
    done = CliRunner().invoke(app, [str(word) for word in words], catch_exceptions=False)
    assert done.exit_code == 0, done.output
    return done.stdout


def width_of(monkeypatch, columns):
    """Let tables be printed as on a terminal of so many columns."""
    monkeypatch.setattr(tables, "terminal", lambda: Console(width=columns, file=sys.stdout))


@pytest.mark.parametrize(
    ("seconds", "words"),
    [
        (0.04, "0.0 s"),
        (1, "1 s"),
        (99, "99 s"),
        (100, "2 min"),
        (5399, "90 min"),
        (5400, "1.5 h"),
        (180, "3 min"),
        (9000, "2.5 h"),
        (47 * 3600, "47.0 h"),
        (9 * 86_400, "9 days"),
        (487_059.3 * 3600, "55.6 years"),
        (1e13, "316,880.9 years"),
    ],
)
def test_durations_are_in_a_unit_that_fits(seconds, words):
    assert arguments.duration(seconds) == words


@pytest.mark.parametrize(
    ("count", "words"),
    [
        (0, "0 B"),
        (999, "999 B"),
        (1024, "1.0 KiB"),
        (5 * 2**20, "5.0 MiB"),
        (189_971.9 * 2**20, "185.5 GiB"),
        (2.5 * 2**50, "2,560.0 TiB"),
    ],
)
def test_sizes_are_in_a_unit_that_fits(count, words):
    assert arguments.bytes_in_words(count) == words


ROWS = [["whittle", "1.119088", "99.18%"], ["a policy of a long name", "1234567.654321", "100.00%"]]


@pytest.mark.parametrize("columns", [32, 50, 60, 120])
def test_no_number_of_a_table_is_ever_cut(monkeypatch, capsys, columns):
    """What does not fit is a column less, with a line that says so; a row is never a list."""
    width_of(monkeypatch, columns)
    header = ("policy", "average reward", "of the bound")
    tables.print_table("what [bold]policies[/bold] earn", header, ROWS, words=("policy",))
    shown = capsys.readouterr().out
    assert max(map(len, shown.splitlines())) <= columns
    assert "…" not in shown
    for at, name in enumerate(header[1:], 1):
        there = [row[at] in shown for row in ROWS]
        assert all(there) or not any(there)
        flat = " ".join(shown.split())
        assert all(there) == (columns >= 50 or at == 1), name
        assert (f"left out, for want of room: {name}" in flat) == (columns == 32 and at == 2)
    assert "[bold]" in shown
    assert "┃" in shown


@pytest.mark.parametrize("columns", [40, 120])
def test_a_column_that_is_left_out_is_not_explained_but_how_to_see_it_is(
    monkeypatch, capsys, columns
):
    width_of(monkeypatch, columns)
    header = ("policy", "average reward", "of the bound")
    tables.print_table(
        "", header, ROWS, words=("policy",), drop=("of the bound",), caption="Means.",
        explained={"of the bound": "A share.", "policy": "A name."}, elsewhere=" and with --json",
    )  # fmt: skip
    flat = " ".join(capsys.readouterr().out.split())
    assert ("Means. A share. A name." in flat) == (columns == 120)
    assert ("Means. A name." in flat) == (columns == 40)
    assert ("the bound; shown in a wider window and with --json" in flat) == (columns == 40)


@pytest.mark.parametrize(("said", "width"), [("80", 80), ("0", 120), ("wide", 120), (None, 120)])
def test_what_is_piped_is_as_wide_as_columns_says(monkeypatch, capsys, said, width):
    monkeypatch.delenv("COLUMNS", raising=False)
    if said is not None:
        monkeypatch.setenv("COLUMNS", said)
    tables.print_lines(["word " * 60])
    longest = max(map(len, capsys.readouterr().out.splitlines()))
    assert width - 6 < longest <= width


SENTENCE = "one word after another, uninterruptedly, and no letter is ever lost in between"


@pytest.mark.parametrize("columns", [50, 80, 120])
def test_twenty_arms_are_twenty_lines_and_words_do_not_break(monkeypatch, capsys, columns):
    width_of(monkeypatch, columns)
    header = ("arm", "name", "reward by itself", "index", "method")
    rows = [[str(k), f"arm-number-{k}", f"{k}.123456", f"0.{k:06}", "exact"] for k in range(20)]
    tables.print_table(
        "", header, rows, words=("arm", "name", "method"), drop=("method", "reward by itself")
    )
    lines = capsys.readouterr().out.splitlines()
    assert sum(line.startswith("│") for line in lines) == 20
    left_out = [line for line in lines if "left out" in line]
    assert bool(left_out) == (columns < 80), lines
    tables.print_table("", ("who", "why"), [["a", SENTENCE]], words=("who",), prose=("why",))
    shown = capsys.readouterr().out
    cells = [line.split("│")[2].strip() for line in shown.splitlines() if line.startswith("│")]
    assert " ".join(cells) == SENTENCE
    assert max(map(len, shown.splitlines())) <= columns


@pytest.mark.parametrize("columns", [60, 80])
def test_plan_on_a_narrow_terminal_shows_all_numbers(monkeypatch, capsys, tmp_path, columns):
    path = tmp_path / "p.toml"
    path.write_text("num_pulls = 1\npay = 'always'\n[[arm]]\np01 = 0.3\np11 = 0.6\ncount = 3\n")
    data = json.loads(run("plan", path, "--json"))
    width_of(monkeypatch, columns)
    monkeypatch.setattr(sys, "argv", ["restive", "plan", str(path)])
    with pytest.raises(SystemExit):
        app()
    shown = capsys.readouterr().out
    for policy in data["policies"]:
        assert f"{policy['average_reward']:.6f}" in shown
        assert f"{policy['pulls_add']:.6f}" in shown
    assert "…" not in shown


def test_init_writes_a_problem_that_can_be_planned_and_never_replaces_a_file(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert run("init") == "problem.toml is written; change it, then: restive plan problem.toml\n"
    bandit = rs.load_problem("problem.toml")
    assert bandit.num_arms == 4
    assert bandit[0].states == ("bad", "good")
    assert "downlink" in run("plan", "problem.toml")
    text = Path("problem.toml").read_text()
    seen = rs.RestlessBandit.from_toml(text.replace('# seen = "always"', 'seen = "always"'))
    assert all(arm.always_seen for arm in seen)
    before = Path("problem.toml").read_bytes()
    with pytest.raises(rs.RestiveError, match=r"problem\.toml exists already; name another file"):
        run("init")
    assert Path("problem.toml").read_bytes() == before
    run("init", "other.toml")
    assert "restive plan other.toml" in Path("other.toml").read_text()
    with pytest.raises(rs.errors.ProblemError, match=r"can be written as \.toml"):
        run("init", "problem.txt")


def test_the_arm_that_init_shows_in_comments_is_one(tmp_path):
    from restive.cli.init import TEMPLATE

    _, relay = TEMPLATE.split("# [[arm]]\n")
    text = "\n".join(line.removeprefix("# ") for line in relay.splitlines())
    (arm,) = rs.RestlessBandit.from_toml(f"num_pulls = 1\n[[arm]]\n{text}")
    assert arm.states == ("down", "slow", "fast")


def completed(words):
    """Return what a shell offers behind some words."""
    done = subprocess.run(
        [RESTIVE], capture_output=True, text=True, check=False,
        env={"_RESTIVE_COMPLETE": "complete_bash", "COMP_WORDS": f"restive {words}",
             "COMP_CWORD": str(len(f"restive {words}".split(" ")) - 1), "PATH": ""},
    )  # fmt: skip
    return done.stdout.split()


def test_the_shell_completes_commands_and_names():
    assert completed("in") == ["init"]
    assert completed("compare paper --learners tsde,ucb") == ["tsde,ucb1"]
    assert completion.complete_instances("paper") == ["paper-bayesian", "paper-frequentist"]
    assert completion.complete_mappings("lp") == ["lp_priority"]
    assert completion.complete_formats("par") == ["parquet"]
    assert completion.complete_tables("cur") == ["curves"]


def test_help_shows_brackets_and_fits_its_commands_on_a_line():
    assert "[[arm]]" in run("plan", "--help")
    shown = run("--help")
    assert "restive init problem.toml" in shown
    assert "..." not in shown.split("Commands:")[1]


STUDY = """
kind = "bayesian"
horizon = 30
num_pulls = 1
replications = 4
prior.num_arms = 2
[sweep]
prior.levels = [[0.2, 0.8], [0.3, 0.7]]
"""


@pytest.fixture(scope="module")
def results(tmp_path_factory):
    out = tmp_path_factory.mktemp("results") / "out"
    rs.run_study(study_from_toml(STUDY), out)
    return out


def test_status_as_data(results):
    data = json.loads(run("status", results, "--json"))
    assert (data["complete"], data["running"]) == (True, False)
    assert [case["done"] for case in data["cases"]] == [4, 4]
    assert [case["title"] for case in data["cases"]] == [
        found.case.title for found in rs.load_results(results)
    ]


def test_an_export_to_standard_output_is_what_a_file_would_hold(results, tmp_path):
    run("export", results, "--out", tmp_path / "curves.csv")
    shown = subprocess.run(
        [RESTIVE, "export", results, "--out", "-"], capture_output=True, check=True
    ).stdout
    assert shown == (tmp_path / "curves.csv").read_bytes()
    run("export", results, "--out", tmp_path / "curves.npz")
    binary = subprocess.run(
        [RESTIVE, "export", results, "--format", "npz", "--out", "-"],
        capture_output=True, check=True,
    ).stdout  # fmt: skip
    import numpy as np

    with np.load(io.BytesIO(binary)) as found, np.load(tmp_path / "curves.npz") as wanted:
        assert found["regret"].tolist() == wanted["regret"].tolist()


def test_learners_are_compared_on_problems_and_studies_of_ones_own(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    own = rs.RestlessBandit(
        [
            rs.gilbert_elliott(0.3, 0.7, (0, 2), states=["off", "on"]),
            rs.gilbert_elliott(0.2, 0.6),
            rs.gilbert_elliott(0.4, 0.6),
        ],
        num_pulls=1,
    )
    Path("mine.toml").write_text(own.to_toml())
    Path("sweep.toml").write_text(STUDY)
    study = comparison_study(
        ["mine.toml", "paper-frequentist", "sweep.toml"], ["tsde", "ucb1"], horizon=30,
        replications=3,
    )  # fmt: skip
    points = [case.point for case in study.cases if case.learner == "tsde"]
    assert points == [
        "instance mine",
        "instance paper-frequentist",
        "instance sweep, levels [0.2, 0.8]",
        "instance sweep, levels [0.3, 0.7]",
    ]
    truth, prior, num_pulls = study.cases[0].settings.systems()
    assert (truth, num_pulls) == (own, 1)
    assert [len(prior.candidates(k)) for k in range(3)] == [81] * 3
    assert prior.typical(0).rewards.tolist() == [0, 2]
    rs.run_study(study, "out")
    Path("mine.toml").unlink()  # the folder needs no other file
    found = rs.load_results("out")
    assert [each.case.title for each in found] == [case.title for case in study.cases]
    alone = rs.frequentist_regret(own, prior, horizon=30, replications=3)
    assert found[0].regret.mean[-1] == pytest.approx(alone.mean[-1])
    assert comparison_study(["sweep.toml"], ["tsde"]).cases[0].settings.horizon == 30


THREE_STATES = rs.Arm([[0.2, 0.4, 0.4]] * 3, rewards=[0, 1, 2], states=["a", "b", "c"])
HELPED = rs.Arm([[0.2, 0.8], [0.1, 0.9]], [[0.5, 0.5], [0.3, 0.7]], [0, 1])
PAYS = rs.gilbert_elliott(0.3, 0.7, passive_rewards=[0, 1])
CHANNEL = rs.gilbert_elliott(0.2, 0.6)


@pytest.mark.parametrize("odd", [THREE_STATES, HELPED, PAYS], ids=["three", "helped", "pays"])
def test_what_has_no_grid_is_compared_under_a_uniform_prior(tmp_path, monkeypatch, odd):
    """At the command line as in Python: learners may find any law, pulled and not."""
    monkeypatch.chdir(tmp_path)
    own = rs.RestlessBandit([odd, CHANNEL, odd], 1)
    Path("odd.toml").write_text(own.to_toml())
    study = comparison_study(["odd.toml"], ["tsde", "ucb1"], horizon=30, replications=2)
    _, prior, _ = study.cases[0].settings.systems()
    for k, arm in enumerate(own):
        found = prior.arms[k]
        assert (found.active == 1).all()
        assert (found.passive == 1).all()
        assert found.typical.rewards.tolist() == arm.rewards.tolist()
        assert found.typical.passive_rewards.tolist() == arm.passive_rewards.tolist()
    rs.run_study(study, "out")
    (alone,) = rs.compare(own, ["tsde", "ucb1"], horizon=30, replications=2)
    ends = {curve.learner: curve.mean[-1] for curve in alone.curves}
    for found in rs.load_results("out"):
        assert found.regret.mean[-1] == pytest.approx(ends[found.case.learner])


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("paper-frequentis", "did you mean 'paper-frequentist'.; or name a TOML file"),
        ("gone.toml", "gone.toml: cannot be read"),
        ("wrong.toml", "wrong.toml: .*line 3: p01 is 7"),
    ],
)
def test_what_cannot_be_compared_is_said(tmp_path, monkeypatch, name, words):
    monkeypatch.chdir(tmp_path)
    Path("wrong.toml").write_text("num_pulls = 1\n[[arm]]\np01 = 7\np11 = 0.5\n")
    with pytest.raises(rs.errors.ProblemError, match=words):
        comparison_study([name], ["tsde"])


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("name = 'a'", "needs a name and a prior"),
        ("prior.levels = [0.2]", "needs a name and a prior"),
        ("name = 'a'\nprior.levels = [0.2]\nlearner = 'ucb1'", "unknown key 'learner'"),
        ("name = 'a'\nprior.levels = [2.0]\nhorizon = 9\nnum_pulls = 1", "must be a probability"),
    ],
)
def test_an_instance_of_ones_own_that_is_none(text, words):
    with pytest.raises(rs.errors.ProblemError, match=words):
        study_from_toml(f"[[sweep.instance]]\n{text}\n")


def test_ctrl_c_is_answered(monkeypatch, capsys):
    def interrupted():
        raise KeyboardInterrupt

    monkeypatch.setattr("restive.measure.zoo.names", interrupted)
    monkeypatch.setattr("sys.argv", ["restive", "zoo"])
    with pytest.raises(SystemExit) as end:
        main()
    assert end.value.code == 130
    assert capsys.readouterr().err == "restive: stopped\n"


def test_ctrl_c_is_answered_while_the_command_line_is_imported() -> None:
    code = (
        "import sys\n"
        "class Impatient:\n"
        "    def find_spec(self, name, path=None, target=None):\n"
        "        if name == 'typer':\n"
        "            raise KeyboardInterrupt\n"
        "sys.meta_path.insert(0, Impatient())\n"
        "from restive.__main__ import main\n"
        "main()\n"
    )
    command = [sys.executable, "-c", code]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (130, "", "restive: stopped\n")


def test_bars_show_what_tells_cases_apart():
    names = ["instance a, tsde, whittle", "instance a, ucb1, whittle"]
    assert list(_told_apart(names).values()) == ["tsde", "ucb1"]
    assert _told_apart(["one"]) == {"one": "one"}


def test_help_is_not_cut_at_80_columns(monkeypatch):
    """The list of commands has the whole first sentence of each, and no help text ends in dots."""
    monkeypatch.setenv("COLUMNS", "80")
    monkeypatch.setenv("TERMINAL_WIDTH", "80")
    listed = " ".join(run("--help").split())
    for command in app.registered_commands:
        name = command.name or command.callback.__name__.replace("_", "-")
        assert command.callback.__doc__.splitlines()[0] in listed, name
        shown = run(name, "--help")
        assert max(map(len, shown.splitlines())) <= 80, name
        assert not re.search(r"\w(\.\.\.|…)$", shown, re.MULTILINE), name
