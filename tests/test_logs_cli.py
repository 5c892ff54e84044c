"""`restive fit` and `restive replay` as a person runs them."""

from __future__ import annotations

import csv
import io
import json
import re
import sys
from pathlib import Path
from shlex import split
from typing import NamedTuple

import pytest

import restive as rs
from restive.cli import main
from restive.cli.fit import _nouns
from restive.logs.decision_words import units_of
from restive.logs.time_steps import step_rule

EXAMPLES = Path(__file__).parent.parent / "examples" / "logs"
OUTREACH = [
    "--time",
    "week_of",
    "--arm",
    "person",
    "--state",
    "outcome",
    "--states",
    "hung_up,listened",
    "--step",
    "1w",
]
CHANNEL_LOG = EXAMPLES / "channels.csv"
CHANNELS = ["--time", "slot", "--arm", "channel", "--state-from", "signal_db > 12"]


class Said(NamedTuple):
    """What a command printed."""

    stdout: str
    stderr: str


@pytest.fixture
def restive(tmp_path, monkeypatch, capsys):
    """Run commands in this process, in a folder of their own."""
    monkeypatch.chdir(tmp_path)

    def run(*arguments, status=0):
        monkeypatch.setattr(sys, "argv", ["restive", *map(str, arguments)])
        with pytest.raises(SystemExit) as ended:
            main()
        said = Said(*capsys.readouterr())
        assert (ended.value.code or 0) == status, said.stderr
        return said

    return run


def test_from_a_log_to_a_decision(restive, tmp_path):
    """Fit, plan with the problem, start an agent from the prior."""
    log = EXAMPLES / "outreach.csv"
    done = restive("fit", log, *OUTREACH, "--by", "region", "--pulls", 15)
    assert "1,560 results of 60 people in 104 weeks" in done.stdout
    assert "order 2" in done.stdout
    assert "│ fails" not in done.stdout
    assert done.stderr == ""
    files = {path.name for path in (tmp_path / "fit").iterdir()}
    assert files == {"problem.toml", "prior.json", "arms.csv", "fit.html", "summary.html"}
    bandit = rs.load_problem(tmp_path / "fit" / "problem.toml")
    assert (bandit.num_arms, bandit.num_pulls) == (60, 15)
    found = rs.load_prior(tmp_path / "fit" / "prior.json")
    agent = rs.TSDE(found.prior, 15, "myopic", start=found.start, max_elapsed=60)
    assert len(agent.select()) == 15
    assert set(found.kind_of) == {"rural", "town"}


def test_the_last_line_names_the_world_that_was_assumed(restive):
    done = restive("fit", CHANNEL_LOG, *CHANNELS)
    last = " ".join(done.stdout[done.stdout.index("assumed: ") :].split())
    assert last == (
        "assumed: a pull does not change how channels go on, and only what a pull finds counts; if "
        "that is not so, say --controlled or --pay always or both"
    )
    done = restive("fit", CHANNEL_LOG, *CHANNELS, "--no-controlled", "--pay", "pulled")
    assert "assumed" not in done.stdout
    data = json.loads(restive("fit", CHANNEL_LOG, *CHANNELS, "--json").stdout)
    assert (data["controlled"], data["pay"]) == (False, "pulled")


def test_in_a_terminal_both_questions_are_asked(restive, monkeypatch, tmp_path):
    monkeypatch.setattr(sys.modules["restive.cli.fit"], "in_terminal", lambda: True)
    monkeypatch.setattr("sys.stdin", io.StringIO("y\ny\n"))
    log = EXAMPLES / "outreach.csv"
    done = restive("fit", log, *OUTREACH)
    assert "Does a pull change how people go on" in done.stdout
    assert "Does every person count in every week" in done.stdout
    assert "assumed" not in done.stdout
    assert "kind all: 60 arms say: about" in " ".join(done.stdout.split())
    bandit = rs.load_problem(tmp_path / "fit" / "problem.toml")
    assert all(arm.pays_unpulled and not arm.is_uncontrolled for arm in bandit.arms)


def test_arms_that_always_pay(restive, tmp_path):
    """Calls help and everyone counts: what is written says so to plan and to an agent."""
    log = EXAMPLES / "outreach.csv"
    done = restive("fit", log, *OUTREACH, "--controlled", "--pay", "always")
    assert "pay" not in done.stdout
    bandit = rs.load_problem(tmp_path / "fit" / "problem.toml")
    assert all(arm.passive_rewards.tolist() == [0, 1] for arm in bandit.arms)
    assert rs.load_prior(tmp_path / "fit" / "prior.json").prior.typical(0).pays_unpulled


def commands(said):
    """Return the commands that a fit prints, as a shell takes them apart."""
    lines = [line for line in said.splitlines() if line.startswith("  restive ")]
    return [split(line)[1:] for line in lines]


def test_what_a_fit_says_to_run_next_runs_as_it_stands(restive):
    log, world = EXAMPLES / "outreach.csv", ["--controlled", "--pay", "always"]
    nouns = ["--unit", "calls", "--reward", "people who listen"]
    done = restive("fit", log, *OUTREACH, *world, *nouns, "--pulls", 15, "--out", "a fit")
    plan, pick, begin = commands(done.stdout)
    words = "arm=person,pull=call,tick=week,reward=people who listen"
    assert begin[-2:] == ["--words", words]
    clock = ["--clock", "weekly", "--start", "2025-12-29"]  # the Monday after the log
    assert begin[-8:-2] == ["--missing", "as-not-pulled", *clock]
    assert "pull 15 of 60 arms" in restive(*pick).stdout
    made = restive(*begin)
    assert "60 people, 15 calls a week; week 0 begins 2025-12-29" in made.stdout
    assert "the prior's log ends 1 week before the first week" in made.stderr
    assert plan == ["plan", "a fit/problem.toml"]
    assert pick == ["pick", "a fit"]
    refused = restive("pick", "a fit/problem.toml", status=2)
    assert "for `restive plan` alone; the list: restive pick 'a fit'" in refused.stderr


def test_a_fit_and_an_agent_that_begins_with_it_have_one_list(restive):
    """Same log, same list: that of `pick`, of the decision of the fit, and of the agent."""
    world = ["--controlled", "--pay", "always", "--json"]
    told = json.loads(restive("fit", EXAMPLES / "outreach.csv", *OUTREACH, *world).stdout)
    restive("pick", "fit")
    with open("picks.csv", encoding="utf-8") as file:
        picked = [row["name"] for row in csv.DictReader(file)]
    assert picked == told["decision"]["first"]
    begin = ["--prior", "fit/prior.json", "--pulls", 15, "--clock", "calls"]
    restive("live", "init", "a.db", *begin, "--missing", "as-not-pulled")
    with rs.LiveAgent.open("a.db") as live:
        assert sorted(live.decide().arms) == sorted(picked)


def test_pulls_are_the_logs_own_unless_said(restive):
    world = ["--no-controlled", "--pay", "pulled", "--unit", "calls"]
    done = restive("fit", EXAMPLES / "outreach.csv", *OUTREACH, *world)
    assert "calls a week: 15, as in the log; another number with --pulls" in done.stdout
    assert rs.load_problem("fit/problem.toml").num_pulls == 15
    assert done.stderr == ""


def test_rows_for_everyone_are_no_pulls(restive, tmp_path):
    """A log with a row for all of them in every step, which does not say who was pulled."""
    rows = [f"{t},{a},{(t * a + t // 3) % 2}" for t in range(30) for a in range(8)]
    log = tmp_path / "log.csv"
    log.write_text("\n".join(["at,who,ok", *rows]))
    columns = ["--time", "at", "--arm", "who", "--state", "ok", "--unit", "calls"]
    done = restive("fit", log, *columns, "--pulls", 2)
    assert "note: all rows count as calls, 8 a step, and this is for 2; if a column" in done.stderr
    assert "tells which were, name it with --pulled" in done.stderr
    replayed = restive("replay", log, "--pulls", 2, *columns[:6])
    assert "all rows count as pulls, 8 a step" in replayed.stderr
    assert restive("fit", log, *columns, "--pulls", 5).stderr == ""
    done = restive("fit", log, *columns)
    assert "calls a step: 1, since the log does not tell" in done.stdout


@pytest.mark.parametrize(
    ("units", "said"),
    [
        (("calls", "reward", "1w"), " --words pull=call,tick=week"),
        (("calls", "reward", "1w", "patient"), " --words arm=patient,pull=call,tick=week"),
        (("batteries", "reward", None), " --words pull=battery"),
        (("boxes", "a,b", None), ""),  # no regular plural, and a reward that --words cannot hold
        (("pulls", "reward", None), ""),
    ],
)
def test_an_agent_speaks_as_its_fit_did(units, said):
    assert _nouns(units_of(*units)) == said


@pytest.mark.parametrize(
    ("step", "period"),
    [("1d", "daily"), ("2w", "P14D"), ("6h", "PT21600S"), ("1.5s", ""), ("3", "")],
)
def test_what_a_clock_calls_a_step(step, period):
    assert step_rule(step).period == period
    if period:
        assert rs.Clock.wall("2026-01-05", period).to_data()["kind"] == "wall"


def test_fit_as_json(restive):
    log = CHANNEL_LOG
    data = json.loads(restive("fit", log, *CHANNELS, "--json").stdout)
    assert data["arms"] == 8
    assert {check["name"] for check in data["checks"]} >= {"memory", "order 2", "drift", "gaps"}
    assert data["held_out"]["chain_against_coin"]["gain"] > 0


def test_replay_says_how_each_figure_is_known(restive):
    log = CHANNEL_LOG
    done = restive(
        "replay",
        log,
        *CHANNELS,
        "--pulls",
        3,
        "--policies",
        "whittle,round-robin,random",
        "--random-pulls",
    )
    assert done.stdout.startswith("calibration: the logged pulls earned")
    for word in ("model-based", "matched", "refused"):
        assert word in done.stdout
    data = json.loads(
        restive("replay", log, *CHANNELS, "--pulls", 3, "--policies", "whittle", "--json").stdout
    )
    assert data["calibration"]["holds"] is True
    assert data["policies"][0]["kind"] == "model-based"


def test_replay_says_once_what_is_the_same_for_all_policies(restive):
    words = ["--pulls", 15, "--policies", "whittle,myopic,round_robin", "--worlds", 20, "--anyway"]
    world = ["--controlled", "--pay", "always", "--random-pulls"]
    done = restive("replay", EXAMPLES / "outreach.csv", *OUTREACH, *words, *world)
    said = " ".join(done.stdout.split())
    assert "│ refused" not in done.stdout
    assert "refused, by matched pulls, for whittle, myopic, round_robin: arms pay while" in said
    assert "52 weeks from" in said
    assert "15 pulls a week; pulled arms of the log earned" in said
    assert "a week with 15.0 pulls; below, all arms count, pulled or not" in said
    assert "reward a week" in done.stdout
    assert "a step" not in done.stdout.split("In short")[0].split("┏")[1].split("┘")[0]
    assert re.search("the people( may| do not seem to)? change", said.lower())
    called = restive(
        "replay", EXAMPLES / "outreach.csv", *OUTREACH, *words, *world, "--unit", "calls"
    )
    said = " ".join(called.stdout.split())
    assert "15 calls a week; pulled arms of the log earned" in said
    assert "a week with 15.0 calls; below" in said


def test_replay_with_a_prior_of_the_same_log_says_so(restive):
    log = CHANNEL_LOG
    restive("fit", log, *CHANNELS, "--out", "here")
    done = restive(
        "replay", log, *CHANNELS, "--pulls", 2, "--prior", "here/prior.json", "--policies", "myopic"
    )
    assert "the prior was fitted on this log" in done.stderr


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["fit", "none.csv", *CHANNELS], "none.csv: cannot be read"),
        (
            ["fit", CHANNEL_LOG, "--time", "slot", "--arm", "chanel", "--state", "x"],
            "no column 'chanel' for arm; did you mean 'channel'",
        ),
        (["fit", CHANNEL_LOG, *CHANNELS, "--rewards", "a,b"], "--rewards must be numbers"),
        (["fit", CHANNEL_LOG, *CHANNELS, "--pay", "never"], "--pay must be one of pulled, always"),
        (["fit", CHANNEL_LOG, *CHANNELS, "--pulls", "99"], "--pulls must be between 1"),
        (
            ["replay", CHANNEL_LOG, *CHANNELS, "--pulls", "2", "--policies", ","],
            "names separated by commas",
        ),
        (["replay", CHANNEL_LOG, *CHANNELS, "--pulls", "2", "--prior", CHANNEL_LOG], "is not JSON"),
    ],
)
def test_mistakes_are_one_sentence(restive, arguments, sentence):
    done = restive(*arguments, status=2)
    assert sentence in done.stderr
    assert done.stderr.startswith("restive: ")


def test_the_examples_are_what_their_script_makes(tmp_path):
    sys.path.insert(0, str(EXAMPLES))
    try:
        import make_logs
    finally:
        sys.path.remove(str(EXAMPLES))
    assert make_logs.outreach() == (EXAMPLES / "outreach.csv").read_text()
    assert make_logs.channels() == (EXAMPLES / "channels.csv").read_text()
