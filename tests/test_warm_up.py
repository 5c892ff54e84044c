"""Compiling ahead: every kernel is used by a chore, and a user hears when one must be compiled."""

import os
import subprocess
import sys
from types import SimpleNamespace

import pytest

from restive.cli.chores import CHORES, compile_kernels
from restive.errors import RestiveError
from restive.kernels.jit import compiling
from restive.kernels.jit.compiling import NOTICE

LATER = """
from numba.core import event
import restive as rs
from restive.cli import app
from restive.cli.chores import CHORES

for chore in CHORES.values():
    chore()
late = []
class Listener(event.Listener):
    def on_start(self, happened):
        late.append(happened.data["dispatcher"].py_func.__qualname__)
    def on_end(self, happened):
        pass
event.register("numba:compile", Listener())

app(["plan", "examples/outreach.toml"], standalone_mode=False)
app(["fit", "examples/logs/outreach.csv", *FIT, "--out", FOLDER], standalone_mode=False)
prior = rs.grid_prior([i / 10 for i in range(1, 10)], 8)
agent = rs.TSDE(prior, 3, horizon=100, seed=1)
for _ in range(50):
    agent.observe([1] * len(agent.select()))
rs.restore(agent.snapshot())
for learner in ("tsde", "ucb1", "thompson_every_step"):
    rs.bayesian_regret(prior, 3, horizon=50, learner=learner, replications=3, seed=1)
given = ["--states", "bad,good", "--controlled", "--pay", "always", "--pulls", "3"]
live = FOLDER + "/live.db"
app(["live", "init", live, "--arms", PEOPLE, "--clock", "given", *given], standalone_mode=False)
for tick in range(5):
    app(["live", "next", live, "--tick", str(tick)], standalone_mode=False)
    with rs.LiveAgent.open(live) as agent:
        agent.record(dict.fromkeys(agent.decision().arms, tick % 2))
app(["live", "explain", live, "P1"], standalone_mode=False)
app(["live", "rebuild", live, "--in-place"], standalone_mode=False)
app(["live", "status", live], standalone_mode=False)
assert not late, late
"""


def test_nothing_is_left_to_compile(tmp_path):
    fit = ["--time", "week_of", "--arm", "person", "--state", "outcome", "--step", "1w"]
    fit += ["--states", "hung_up,listened", "--by", "region", "--pulls", "15"]
    people = tmp_path / "people.csv"
    people.write_text("arm,kind\n" + "".join(f"P{k},{'ab'[k % 2]}\n" for k in range(9)))
    code = LATER.replace("FIT", repr(fit)).replace("FOLDER", repr(str(tmp_path)))
    code = code.replace("PEOPLE", repr(str(people)))
    found = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=False
    )
    assert found.returncode == 0, found.stderr


def test_all_chores_are_done_each_in_a_process(monkeypatch):
    begun = []
    monkeypatch.setattr("restive.cli.chores._begin", lambda chore: begun.append(chore) or _Done(0))
    done = []
    compile_kernels(progress=done.append)
    assert begun == list(CHORES)
    assert sorted(done) == sorted(CHORES)


def test_a_chore_that_fails_is_named(monkeypatch):
    monkeypatch.setattr("restive.cli.chores._begin", lambda chore: _Done(1))
    with pytest.raises(RestiveError, match=r"kernels of .* failed: no space left"):
        compile_kernels()


def test_only_some_chores(monkeypatch):
    begun = []
    monkeypatch.setattr("restive.cli.chores._begin", lambda chore: begun.append(chore) or _Done(0))
    compile_kernels(["regret", "plans"])
    assert begun == ["regret", "plans"]
    with pytest.raises(RestiveError, match=r"'plan' is not one of .*plans"):
        compile_kernels(["plan"])


class _Done:
    """A process that has ended."""

    def __init__(self, status):
        self.returncode = status

    def poll(self):
        return self.returncode

    def communicate(self):
        return "", "Traceback\nno space left\n"

    def kill(self):
        pass


def test_the_first_run_says_that_it_compiles(tmp_path):
    code = "import restive as rs; rs.evaluate(rs.zoo.load('paper-frequentist').bandit, 'myopic')"
    said = [
        subprocess.run(
            [sys.executable, "-c", code],
            capture_output=True,
            text=True,
            check=True,
            env=os.environ | {"NUMBA_CACHE_DIR": str(tmp_path)},
        ).stderr
        for _ in range(2)
    ]
    assert said == [f"{NOTICE}\n", ""]


REFUSED = {
    "plan": ["plan", "BROKEN"],
    "pick": ["pick", "BROKEN"],
    "pick sightings": ["pick", "examples/outreach.toml", "--sightings", "BROKEN"],
    "compare": ["compare", "BROKEN"],
    "run": ["run", "BROKEN", "--out", "FOLDER"],
    "fit": ["fit", "BROKEN", "--time", "a", "--arm", "b", "--state", "c"],
    "replay": ["replay", "BROKEN", "--time", "a", "--arm", "b", "--state", "c", "--pulls", "1"],
    "fit columns": ["fit", "examples/logs/outreach.csv", "--time", "week"],
}
WATCHED = """
from numba.core import event
compiled = []
class Listener(event.Listener):
    def on_start(self, happened):
        compiled.append(happened.data["dispatcher"].py_func.__qualname__)
    def on_end(self, happened):
        pass
event.register("numba:compile", Listener())
from restive.cli import app
from restive.errors import RestiveError
for words in COMMANDS:
    try:
        app(words, standalone_mode=False)
    except RestiveError:
        continue
    raise AssertionError(words)
assert not compiled, compiled
"""


def test_commands_that_end_in_an_input_error_compile_nothing(tmp_path):
    broken = tmp_path / "broken.toml"
    broken.write_text("num_pulls = 'two'\n[[arm]]\np01 = 3\n")
    places = {"BROKEN": str(broken), "FOLDER": str(tmp_path / "out")}
    commands = [[places.get(word, word) for word in words] for words in REFUSED.values()]
    found = subprocess.run(
        [sys.executable, "-c", WATCHED.replace("COMMANDS", repr(commands))],
        capture_output=True, text=True, check=False,
        env=os.environ | {"NUMBA_CACHE_DIR": str(tmp_path)},
    )  # fmt: skip
    assert found.returncode == 0, found.stderr[-3000:]


def test_the_notice_comes_once_and_workers_are_silent(capsys, monkeypatch):
    watch = compiling._Watch()
    happened = SimpleNamespace(data={"dispatcher": SimpleNamespace(py_func=compile_kernels)})
    monkeypatch.setattr(compiling, "PATIENCE", -1.0)
    for parent, times in ((None, 1), (object(), 0)):
        monkeypatch.setattr(compiling, "parent_process", lambda parent=parent: parent)
        watch = compiling._Watch()
        for _ in range(15):
            watch.on_start(happened)
            watch.on_end(happened)
        assert capsys.readouterr().err.count("compiling what is used here") == times
