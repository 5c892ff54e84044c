"""Nothing that others wrote ends in anything but an answer or one RestiveError.

Here a fixed number of broken inputs per entry point; `make soak` runs many more
(RESTIVE_FUZZ of them in all).
"""

import json
import os
import shutil
import signal
import tempfile
from atexit import register
from contextlib import contextmanager, suppress
from functools import cache
from inspect import signature
from pathlib import Path
from random import Random

import pytest

import restive as rs
from continuous_cases import beta_channels, mixed, pooled
from fuzzing import DEEP, ENTRY_POINTS, broken, entry_point, json_bytes, nested
from learning_cases import channels, joint, three_states
from restive.gym import RestlessEnv, RestlessVectorEnv
from restive.learn.learners.base import Relative
from restive.learn.snapshots import checksum
from restive.live.people.arm_files import arms_of_sheet
from restive.live.people.operator_files import record_sheet
from restive.live.people.sheets import parse_sheet
from restive.live.settings import Settings
from restive.plan.picks import read_sightings
from restive.problem.changing_file import load_any_problem
from restive.problem.problem_file import load_problem, problem_from_toml
from restive.problem.toml_text import parse_toml, toml_of
from restive.studies.chunk_file import DamagedChunkError, _checksum, decoded
from restive.studies.export import export_results
from restive.studies.ledger import Ledger
from restive.studies.spec import digest, study_from_data, study_from_toml
from restive.studies.summary import load_results
from study_cases import (
    BAYESIAN,
    CONTINUOUS,
    FREQUENTIST,
    JOINT,
    LEARNERS,
    changed,
    chunk_paths,
    run,
)
from test_always_learning import dirichlet, finite
from test_always_learning import mixed as seen_differently
from test_always_seen import calls

INPUTS = int(os.environ.get("RESTIVE_FUZZ", "8000"))  # in all
BLOCKS = 8  # in which an entry point's inputs are cut, so that several processes share them

HANGS = 300  # seconds, for what takes milliseconds

PROBLEM = """
num_pulls = 2
[[arm]]
name = "downlink"
p01 = 0.3
p11 = 0.7
count = 3
[[arm]]
active = [[0.9, 0.1, 0.0], [0.2, 0.7, 0.1], [0.1, 0.3, 0.6]]
passive = [[0.8, 0.2, 0.0], [0.3, 0.6, 0.1], [0.2, 0.3, 0.5]]
rewards = [0.0, 0.4, 1.0]
"""
SWEPT = f"""{FREQUENTIST}
[sweep]
horizon = [20, 40]
problem.name = ["a", "b"]
"""
INSTANCE = 'instance = "paper-frequentist"\ntimes = [1, 10]\n[sweep]\nhorizon = [10, 20]\n'
CANDIDATES = """
kind = "bayesian"
num_pulls = 1
horizon = 10
[[prior.arm]]
count = 2
[[prior.arm.candidate]]
p01 = 0.3
p11 = 0.7
weight = 2
[[prior.arm.candidate]]
active = [[0.9, 0.1], [0.2, 0.8]]
rewards = [0, 1]
"""
STUDIES = (FREQUENTIST, BAYESIAN, CONTINUOUS, JOINT, LEARNERS, SWEPT, INSTANCE, CANDIDATES)


@cache
def workplace():
    """Return a folder of this process, in which files are put to be read."""
    folder = Path(tempfile.mkdtemp())
    register(shutil.rmtree, folder, ignore_errors=True)
    return folder


@cache
def results():
    """Return a results folder with a small study."""
    return run(changed(FREQUENTIST, replications=3), workplace() / "results", size=2).folder


@entry_point("problem", lambda: [PROBLEM.encode()])
def read_problem(text):
    path = workplace() / "problem.toml"
    path.write_bytes(text)
    load_problem(path)


def as_toml(data):
    """Write broken data as TOML, or what comes of it."""
    text = toml_of(data if isinstance(data, dict) else {"data": data})
    deep = b"[" * 100 + b"]" * 100
    return text.encode(errors="replace").replace(json.dumps(DEEP).encode(), deep)


@entry_point(
    "sightings", lambda: [b"arm,state,ago\ndownlink,0,1\n3,2,17\n", b"ago;arm;state\n3;1;0"]
)
def read_last_sightings(text):
    path = workplace() / "last.csv"
    path.write_bytes(text)
    read_sightings(path, problem_from_toml(PROBLEM))


CHANGING = f"""{PROBLEM}
[[change]]
at = 50
[[change.arm]]
arms = [0, 2]
p01 = 0.1
p11 = 0.2
[[change]]
at = 70
[[change.arm]]
arms = [3]
active = [[0.9, 0.1, 0.0], [0.2, 0.7, 0.1], [0.1, 0.3, 0.6]]
"""


@entry_point("changing problem", lambda: [CHANGING.encode()])
def read_changing(text):
    path = workplace() / "changing.toml"
    path.write_bytes(text)
    load_any_problem(path)


@entry_point("problem data", lambda: [parse_toml(PROBLEM)], as_toml)
def read_problem_data(text):
    problem_from_toml(text.decode())


@entry_point("study", lambda: [text.encode() for text in STUDIES])
def read_study(text):
    study_from_toml(text.decode(errors="replace"), workplace())


@entry_point("study data", lambda: [parse_toml(text) for text in STUDIES], nested)
def read_study_data(data):
    study_from_data(data, folder=workplace())


def manifest():
    return json.loads((results() / "manifest.json").read_text())


def with_its_hash(data):
    """Write a manifest that was edited by somebody who knows how its hash is made."""
    with suppress(KeyError, TypeError, ValueError):
        data["hash"] = digest(data["study"])
    return json_bytes(data)


@entry_point("manifest", lambda: [json.dumps(manifest()).encode()])
@entry_point("manifest data", lambda: [manifest()], with_its_hash)
def read_manifest(contents):
    folder = workplace() / "edited"
    folder.mkdir(exist_ok=True)
    (folder / "manifest.json").write_bytes(contents)
    ledger = Ledger.open(folder)
    assert load_results(folder) == []
    assert ledger.study.to_toml()
    assert ledger.commits


def chunk_parts():
    """Return the description of a chunk and its bytes, as data that can be broken."""
    line, _, body = chunk_paths(results())[0].read_bytes().partition(b"\n")
    return {**json.loads(line), "body": body.hex()}


def with_its_checksum(data):
    """Write a chunk that was edited by somebody who knows how its checksum is made."""
    try:
        body = bytes.fromhex(data.pop("body"))
    except (AttributeError, KeyError, TypeError, ValueError):
        body = b"\x00" * 64
    if isinstance(data, dict) and "sha256" in data:
        data["sha256"] = _checksum([data.get("what"), data.get("arrays")], [body])
    return json_bytes(data) + b"\n" + body


@entry_point("chunk", lambda: [chunk_paths(results())[0].read_bytes()])
@entry_point("chunk data", lambda: [chunk_parts()], with_its_checksum)
def read_chunk(contents):
    """Read a chunk by itself, and in its place, by all that reads results."""
    with suppress(DamagedChunkError):
        decoded(contents, chunk_parts()["what"])
    folder = workplace() / "copied"
    if not folder.exists():
        shutil.copytree(results(), folder)
    chunk_paths(folder)[0].write_bytes(contents)
    load_results(folder)
    export_results(folder, format="csv", table="replications", path=workplace() / "out.csv")
    export_results(folder, format="csv", table="posterior", path=workplace() / "out.csv")


def always_seen():
    return dirichlet(calls()), 3


def seen_both_ways():
    return finite(seen_differently()), 1


LIVES = {  # learners whose snapshots are broken: case, mapping, horizon, steps, options
    "tsde": (channels, "whittle", None, 23, {}),
    "tsde joint": (joint, "myopic", 60, 40, {}),
    "tsde continuous": (beta_channels, "whittle", None, 20, {}),
    "tsde mixed": (mixed, "whittle", 60, 20, {}),
    "tsde pooled": (pooled, "myopic", None, 20, {}),
    "epsilon_greedy": (channels, "myopic", None, 9, {"epsilon": 0.3}),
    "mean_index": (channels, "whittle", None, 9, {"learn_kinds": "epochs"}),
    "thompson_every_step": (three_states, "best_fixed", None, 9, {}),
    "certainty_equivalence": (channels, "myopic", 50, 30, {}),
    "ucb1": (channels, "myopic", None, 11, {}),
    "beta_bernoulli": (three_states, "myopic", None, 12, {}),
    "regenerative_cycle": (channels, "myopic", None, 20, {}),
    "restless_ucb": (channels, "myopic", 60, 9, {"exploration": 2, "max_age": 5}),
    "restless_ucb planned": (channels, "myopic", 90, 70, {"exploration": 2, "max_age": 5}),
    "tsde forgetting": (channels, "whittle", None, 40, {"forget_after": 23}),
    "tsde continuous forgetting": (beta_channels, "whittle", None, 30, {"forget_after": 23}),
    "tsde always seen": (always_seen, "whittle", None, 20, {}),
    "tsde seen both ways": (seen_both_ways, "whittle", None, 20, {}),
    "ucwhittle": (always_seen, "whittle", None, 30, {}),
    "wiql": (always_seen, "whittle", None, 20, {}),
    "qwi": (always_seen, "whittle", None, 20, {}),
}


def lived_with(name):
    """Return a new agent of one of LIVES, and how many steps it lives."""
    case, mapping, horizon, steps, options = LIVES[name]
    learner = name.split(maxsplit=1)[0]
    return rs.make_learner(learner, *case(), mapping, horizon, seed=4, **options), steps


@cache
def lived(name):
    """Return snapshots of a learner: before a step, and with arms selected."""
    agent, steps = lived_with(name)
    rng = Random(5)
    for _ in range(steps):
        agent.select()
        agent.observe([rng.randrange(len(agent.task.facts.rewards[k])) for k in agent.awaited])
    before = agent.snapshot()
    agent.select()
    return before, agent.snapshot()


def with_its_digest(data):
    """Write a snapshot that was edited by somebody who knows how its checksum is made."""
    data = nested(data, 500)
    with suppress(AttributeError, RecursionError, TypeError, ValueError):
        data["checksum"] = checksum({key: data[key] for key in data if key != "checksum"})
    return data


def read_snapshot(data):
    """Continue with an agent, if there is one, and let it tell what it knows."""
    agent = rs.restore(data)
    for step in range(4):
        arms = agent.select()
        assert len(set(arms.tolist())) == len(arms)
        agent.observe([step % 2] * len(agent.awaited))
    arms = range(agent.task.num_arms)
    if isinstance(agent.learner, Relative):
        for k in arms:
            assert abs(agent.posterior(k).weights.sum() - 1) < 1e-9
            assert abs(agent.belief(k).sum() - 1) < 1e-9
    assert all(agent.evidence(k).total >= 0 for k in arms)
    assert rs.restore(agent.snapshot()).select().tolist() == agent.select().tolist()


for life in LIVES:
    entry_point(f"snapshot of {life}", lambda life=life: lived(life), with_its_digest)(
        read_snapshot
    )


METHODS = ("select", "observe", "skip", "observe_late", "pull", "posterior", "belief", "evidence")
CALLS = [
    {"select": {"num_pulls": 2, "available": [True, False, True, True]}},
    {"observe": {"states": [0, 1]}},
    {"select": {"num_pulls": None, "available": [0, 1, 3]}},
    {"observe": {"states": [1], "arms": [0], "missing": "not pulled"}},
    {"skip": {"num_steps": 3}},
    {"observe_late": {"arm": 2, "state": 1, "time": 4}},
    {"pull": {"arms": [3, 1]}},
    {"observe": {"states": [1, 0], "arms": [1, 3]}},
    {"posterior": {"k": 1}},
    {"belief": {"k": 1}},
    {"evidence": {"k": 1}},
    {"select": {}},
    {"observe": {"states": [1, 1]}},
]


def bound(agent, call):
    """Yield calls of an agent that Python itself accepts."""
    for name, given in call.items() if isinstance(call, dict) else ():
        if name not in METHODS or not isinstance(given, dict):
            continue
        method = getattr(agent, name)
        with suppress(TypeError):
            arguments = signature(method).bind(**given).arguments
            if arguments.get("num_steps") != 2**31:  # which would be heard, after minutes
                yield name, lambda method=method, arguments=arguments: method(**arguments)


# ---------------------------------------------------------------- live agents


@cache
def live_agent():
    """Return a live agent of this process, with a decision that is open."""
    live = rs.LiveAgent.create(
        workplace() / "live.db", rs.grid_prior([0.2, 0.8], 4), 2, names=list("ABCD"),
        clock=rs.Clock.given("2026-11-16", "P7D"), outcomes={"heard": 1, "gone": "leave"},
        durability="process",
    )  # fmt: skip
    live.decide(tick=0)
    live.decide(tick=1)
    return live


RESULTS = [
    b"arm,state\nA,1\nB,0\n",
    "\ufeffArm;Outcome;Date\r\nA;heard;2026-11-18\r\n'=C;unseen;2026-11-23\r\n".encode(),
    b'tick,arm,outcome,note\n0,D,not-pulled,"two\nlines"\n1,C,gone,\n',
]


@entry_point("results file", lambda: RESULTS)
def read_results(contents):
    record_sheet(live_agent(), parse_sheet(contents, "r.csv"), accept_good=len(contents) % 2 == 0)


@entry_point("people file", lambda: [b"arm,kind,last_state,last_seen,elapsed\nQ,all,1,,3\nR,,,,\n"])
def read_arms_of_sheet(contents):
    settings = live_agent().settings
    arms_of_sheet(parse_sheet(contents, "p.csv", settings.words), ["all"], settings, 3, {})


@entry_point("settings data", lambda: [live_agent().settings.to_data()], nested)
def read_settings(data):
    if isinstance(data, dict):
        Settings.from_data(data)


@cache
def live_file():
    """Return the bytes of a live agent's file."""
    path = workplace() / "kept.db"
    with rs.LiveAgent.create(path, rs.grid_prior([0.2, 0.8], 3), 1) as live:
        for _ in range(3):
            live.record(dict.fromkeys(live.decide().arms, 1))
    return path.read_bytes()


@entry_point("live file", lambda: [live_file()])
def open_live_file(contents):
    path = workplace() / "broken.db"
    for ending in ("-wal", "-shm"):
        path.with_name(path.name + ending).unlink(missing_ok=True)
    path.write_bytes(contents)
    with rs.LiveAgent.open(path, durability="process") as live:
        live.check()
        live.decide()


LIVE_CALLS = [
    ["decide", {"tick": 2, "num_pulls": 1, "unavailable": ["A"], "request": "x"}],
    ["record", {"results": {"A": 1, "B": "unseen"}, "tick": 1, "instead": {"C": 0}}],
    ["step", {"results": {"A": 1}, "tick": 1, "actor": "me"}],
    ["join", {"arms": {"E": "all"}, "last_seen": {"E": [1, 2]}}],
    ["leave", {"arms": ["D"]}],
    ["correct", {"results": {"A": 0}, "tick": 0, "note": "why"}],
    ["acknowledge", {"alarm": 3, "note": "why"}],
    ["make_token", {"name": "me", "role": "act", "days": 3}],
    ["arms", {"after": "A", "limit": 5, "by": "index"}],
    ["explain", {"name": "A"}],
    ["set_words", {"words": {"arm": "patient", "arms": "", "tick": "week", "reward": "x"}}],
    ["tick_asked", {"tick": None, "date": "2026-11-18"}],
    ["events", {"since": 1, "limit": 3}],
]
KEYWORDS = {name: set(arguments) for name, arguments in LIVE_CALLS}


@entry_point("call of a live agent", lambda: LIVE_CALLS, nested)
def call_live_agent(call):
    if isinstance(call, list) and len(call) == 2 and isinstance(call[1], dict):
        name, arguments = call
        if isinstance(name, str) and arguments.keys() == KEYWORDS.get(name):
            getattr(live_agent(), name)(**arguments)


@entry_point("calls of an agent", lambda: [CALLS], nested)
def call_an_agent(calls):
    """Call an agent with whatever; what is refused leaves it as it was."""
    agent = rs.TSDE(*channels(), "myopic", seed=1)
    refused = None
    for call in calls if isinstance(calls, list) else []:
        for name, made in bound(agent, call):
            before = agent.snapshot()
            try:
                made()
            except rs.RestiveError as error:
                assert agent.snapshot() == before, name
                refused = error
    if refused is not None:
        raise refused


ACTIONS = [
    ["scores", [0.5, -0.25, 1.0, 0.0]],
    ["subset", 5],
    ["arm", 3],
    ["pull", [0, 3]],
]


@entry_point("actions of an environment", lambda: ACTIONS, nested)
def step_an_environment(action):
    """Step single and vector environments, and a batch of worlds, with whatever."""
    if not (isinstance(action, list) and len(action) == 2):
        return
    form, given = action
    prior, num_pulls = channels()
    bandit = prior.sample(0, num_pulls)
    if form == "pull":
        rs.BatchWorld(bandit, [0, 1]).pull([given, [0, 1]])
        return
    for env, one in (
        (RestlessEnv(bandit, action=form, values=False), given),
        (RestlessVectorEnv(bandit, action=form, num_envs=2, values=False), [given, given]),
    ):
        env.reset(seed=0)
        env.step(one)


@contextmanager
def named(number, name):
    """Name the input in whatever it ends in; one that hangs is ended."""

    def hangs(signum, frame):
        raise TimeoutError

    before = signal.signal(signal.SIGALRM, hangs)
    signal.alarm(HANGS)
    try:
        yield
    except BaseException as error:
        error.add_note(f"input: broken(ENTRY_POINTS[{name!r}], {number})")
        raise
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, before)


def numbers_of(block):
    """Return the numbers of a block's inputs; the first ones are the same for every budget."""
    return range(block, INPUTS // len(ENTRY_POINTS), BLOCKS)


@pytest.mark.parametrize("block", range(BLOCKS))
@pytest.mark.parametrize("name", ENTRY_POINTS)
def test_broken_input_is_refused_with_a_restive_error_or_read(name, block):
    point = ENTRY_POINTS[name]
    refused = 0
    numbers = numbers_of(block)
    for number in numbers:
        with named(number, name):
            given = broken(point, number)  # which must not fail itself
            try:
                point.call(given)
            except rs.RestiveError as error:
                refused += str(error) != ""
    assert refused >= len(numbers) // 8  # else what is broken is not what matters
