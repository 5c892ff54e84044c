"""What every registered learner must do; a new one is tested by being registered."""

import gc
import inspect
import json
import os
import re
import subprocess
import sys
import types
from dataclasses import asdict, fields
from itertools import pairwise

import numpy as np
import pytest

import restive as rs
from learning_cases import channels, joint, posed, random_prior, trace, true_bandit
from restive.kernels.learn.learners.memory import DRAWS
from restive.learn.learners import LEARNERS, describe, learner
from restive.learn.learners.base import Compiled, Relative
from restive.learn.make import make_learner
from restive.measure.replication import replicate
from restive.measure.world import World

NAMES = [n for n, made in LEARNERS.items() if getattr(made, "sees", "pulled") == "pulled"]

# Options with which a learner is quick, and does all that it ever does, in a short run.
OPTIONS = {
    "epsilon_greedy": {"epsilon": 0.3},
    "episodic_thompson": {"length": 7},
    "restless_ucb": {"exploration": 3, "max_age": 20},
}
NEEDS_HORIZON = {"restless_ucb"}
HORIZON = 200


def two_arms():
    """K=2, N=1: channels of a grid."""
    return rs.grid_prior([0.2, 0.5, 0.8], 2), 1


def three_states():
    """K=3, N=1: three states each, moving alike pulled or not."""
    rng = np.random.default_rng(31)
    arms = [random_prior(rng, 3, 4, [0.2, 0, 1], controlled=False) for _ in range(3)]
    return rs.IndependentPrior(arms), 1


def controlled():
    """K=3, N=2: two states, moving otherwise when pulled."""
    rng = np.random.default_rng(32)
    arms = [random_prior(rng, 2, 5, [0.1, 0.8]) for _ in range(3)]
    return rs.IndependentPrior(arms), 2


INSTANCES = {  # priors and numbers of pulls
    "two_arms": two_arms(),
    "four_arms": channels(),
    "three_states": three_states(),
    "controlled": controlled(),
    "joint": joint(),
}


def test_each_learner_has_a_file_of_its_name_or_is_among_the_relatives():
    for name, made in LEARNERS.items():
        home = "relatives" if hasattr(made, "rules") else name
        assert made.__module__ == f"restive.learn.learners.{home}"


every_learner = pytest.mark.parametrize("name", NAMES)
every_instance = pytest.mark.parametrize("instance", INSTANCES)


def made(name, instance="four_arms", seed=0, horizon=HORIZON):
    """Return a fresh learner."""
    prior, num_pulls = INSTANCES[instance]
    options = OPTIONS.get(name, {})
    return make_learner(name, prior, num_pulls, "myopic", horizon, seed=seed, **options)


def setup_of(name, prior, num_pulls, truth, horizon=HORIZON):
    """Return what the engine runs."""
    chosen = learner(name, **OPTIONS.get(name, {}))
    return posed(prior, num_pulls, "myopic", horizon, true_bandit=truth, learner=chosen)


SCRIPT = np.random.default_rng(33).random((2000, 9))


def scripted(agent, instance):
    """Return what the script shows of the selected arms, whatever was pulled before."""
    prior, _ = INSTANCES[instance]
    sizes = [prior.candidates(k)[0].num_states for k in agent.select()]
    shares = SCRIPT[agent.time, agent.select()]
    return [int(share * size) for share, size in zip(shares, sizes, strict=True)]


def decisions(agent, instance, steps):
    """Return the arms of so many steps of the script."""
    found = []
    for _ in range(steps):
        found.append(agent.select().tolist())
        agent.observe(scripted(agent, instance))
    return found


def known(agent):
    """Return all that a learner knows, with nothing left to be multiplied later."""
    if isinstance(agent.learner, Relative):
        for k in range(agent.prior.num_arms):
            agent.posterior(k)
    return agent.snapshot()


# The registry.


def test_kinds_names_titles_and_numbers():
    assert len({made.title for made in LEARNERS.values()}) == len(LEARNERS)
    numbers = [made.number for made in LEARNERS.values() if isinstance(made(), Compiled)]
    assert len(set(numbers)) == len(numbers)
    for name, found in LEARNERS.items():
        assert found.name == name
        assert re.fullmatch(r"[a-z][a-z0-9_]*", name)
        assert found.title
        assert isinstance(found(), Compiled) != isinstance(found(), Relative)


@every_learner
def test_a_learner_cites_its_source_and_explains_its_options(name):
    """Relatives are variations of one algorithm, which their module cites."""
    found = LEARNERS[name]
    text = found.__doc__
    if isinstance(found(), Relative):
        text += sys.modules[found.__module__].__doc__
    else:
        assert re.search(r"\(.*\b(19|20)\d\d\b.*\)", text, re.DOTALL)
    assert len(text) > 60
    for field in fields(found):
        assert re.search(rf"^    {field.name}\n        \S", found.__doc__, re.MULTILINE)


@every_learner
def test_options_are_checked(name):
    found = LEARNERS[name]
    for field in fields(found):
        for value in ("much", [1], float("nan"), -1e300, True, {}):
            with pytest.raises(rs.errors.ProblemError, match=f"{name}: {field.name} must be"):
                learner(name, **{field.name: value})
        with pytest.raises(rs.errors.ProblemError, match=f"did you mean '{field.name}'"):
            learner(name, **{field.name[:-1]: 1})
    with pytest.raises(rs.errors.ProblemError, match=f"learner {name}: unknown option 'zzz'"):
        learner(name, zzz=1)


@every_learner
def test_options_are_plain_data_and_the_way_back(name):
    chosen = learner(name, **OPTIONS.get(name, {}))
    data = json.loads(json.dumps(asdict(chosen), allow_nan=False))
    assert learner(name, **data) == chosen
    assert describe(learner(name)) == name
    given = describe(chosen)
    assert all(f"{option}={value}" in given for option, value in OPTIONS.get(name, {}).items())


@every_learner
def test_no_option_hides_behind_an_argument_of_make_learner(name):
    others = set(inspect.signature(make_learner).parameters)
    assert not others & {field.name for field in fields(LEARNERS[name])}


@every_learner
def test_hyphens_are_as_good_and_typos_are_answered(name):
    assert learner(name.replace("_", "-")) == learner(name)
    with pytest.raises(rs.errors.ProblemError, match=r"unknown learner .*; did you mean '"):
        learner(name + "x")


def test_what_is_no_name():
    with pytest.raises(rs.errors.ProblemError, match=r"unknown learner 'zzz'; known are tsde, "):
        learner("zzz")
    with pytest.raises(rs.errors.ProblemError, match="a learner's name must be text, got 3"):
        learner(3)


@every_learner
def test_without_a_horizon_it_learns_or_says_that_it_needs_one(name):
    if name in NEEDS_HORIZON:
        with pytest.raises(rs.errors.ProblemError, match=f"the learner {name} needs a horizon"):
            made(name, "two_arms", horizon=None)
        return
    agent = made(name, "two_arms", horizon=None)
    assert len(decisions(agent, "two_arms", 70)) == 70


# Asking and telling.


@every_instance
@every_learner
def test_arms_are_as_many_as_asked_for_distinct_and_ascending(name, instance):
    prior, num_pulls = INSTANCES[instance]
    agent = made(name, instance)
    for step in range(60):
        assert agent.time == step + 1
        arms = agent.select()
        assert arms.dtype == np.int64
        assert arms.shape == (num_pulls,)
        assert 0 <= arms[0] <= arms[-1] < prior.num_arms
        assert all(a < b for a, b in pairwise(arms))
        before = agent.belief_state
        states = scripted(agent, instance)
        agent.observe(states)
        assert agent.belief_state == before.updated(arms, states)


@every_learner
def test_select_asked_again_answers_the_same_and_changes_nothing(name):
    agent, other = made(name), made(name)
    for _ in range(40):
        arms = agent.select()
        before = known(agent)
        for _ in range(3):
            assert agent.select().tolist() == arms.tolist()
        assert known(agent) == before
        handed_out = agent.select()
        handed_out[:] = 77
        assert agent.select().tolist() == arms.tolist() == other.select().tolist()
        states = np.array(scripted(agent, "four_arms"))
        other.observe(states.tolist())
        agent.observe(states)
        states[:] = 77
    assert known(agent) == known(other)


@every_learner
def test_observe_needs_a_select(name):
    agent = made(name)
    for steps in (0, 20):
        decisions(agent, "four_arms", steps)
        before = known(agent)
        with pytest.raises(rs.errors.ProblemError, match=r"call select\(\) before observe\(\)"):
            agent.observe([0, 1])
        assert known(agent) == before


WRONG = {
    "too_few": ([1], "2"),
    "too_many": ([1, 0, 1], "2"),
    "none": ([], "2"),
    "one_number": (1, "2"),
    "nothing": (None, "2"),
    "nested": ([[1, 0]], "2"),
    "no_such_state": ([0, 2], r"arm \d: state 2 is not one of its states 0 to 1"),
    "negative": ([-1, 0], r"arm \d: state -1 is not one of its states 0 to 1"),
    "huge": ([2**62, 0], r"arm \d: state 4611686018427387904 is not one of its states 0 to 1"),
    "fractions": ([0.0, 1.0], "whole numbers"),
    "truth_values": ([True, False], "whole numbers"),
    "text": (["a", "b"], "no named states"),
    "a_gap": ([None, 1], "whole numbers"),
}


@pytest.mark.parametrize("wrong", WRONG)
@every_learner
def test_an_observation_that_cannot_be_leaves_the_learner_as_it_was(name, wrong):
    states, message = WRONG[wrong]
    agent, other = made(name, seed=1), made(name, seed=1)
    for steps in (0, 23):
        assert decisions(agent, "four_arms", steps) == decisions(other, "four_arms", steps)
        arms = agent.select().tolist()
        before = known(agent)
        with pytest.raises(rs.errors.ProblemError, match=message):
            agent.observe(states)
        assert known(agent) == before
        assert agent.select().tolist() == arms
    assert decisions(agent, "four_arms", 20) == decisions(other, "four_arms", 20)


@every_learner
def test_a_ragged_observation_is_a_clear_error(name):
    agent = made(name)
    agent.select()
    with pytest.raises(rs.errors.ProblemError, match="whole numbers"):
        agent.observe([[1], [1, 0]])


# Luck.


@every_instance
@every_learner
def test_the_seed_decides(name, instance):
    """The same seed, the same decisions; another, others, if the learner draws at all."""
    agents = [made(name, instance, seed) for seed in (5, 5, 6)]
    runs = [decisions(agent, instance, 120) for agent in agents]
    assert runs[0] == runs[1]
    assert known(agents[0]) == known(agents[1])
    actor, relative = agents[0]._actor, isinstance(agents[0].learner, Relative)
    draws = actor.episodes.clock[0].draws if relative else actor.memory.ints[DRAWS]
    assert (runs[0] != runs[2]) == (draws > 0)


@pytest.mark.parametrize("seed", [-1, 2**64, 1.5, "1"])
@every_learner
def test_what_is_no_seed(name, seed):
    with pytest.raises(
        rs.errors.ProblemError, match=r"seed must be a whole number from 0 to 2\^64 - 1"
    ):
        made(name, "two_arms", seed)


@every_learner
def test_replications_have_their_own_luck_and_threads_change_nothing(name):
    prior, num_pulls = INSTANCES["four_arms"]
    setup = setup_of(name, prior, num_pulls, true_bandit(prior, num_pulls))
    times = np.array([1, 50, HORIZON])
    done = replicate(*setup, times, 6, seed=2, threads=1)
    again = replicate(*setup, times, 6, seed=2, threads=2, chunk=1)
    later = replicate(*setup, times, 3, seed=2, first=3, threads=1)
    for field in ("expected", "realised", "episodes"):
        found = getattr(done, field)
        assert np.array_equal(found, getattr(again, field))
        assert np.array_equal(found[3:], getattr(later, field))
    assert len(np.unique(done.expected[:, -1])) > 1


every_relative = pytest.mark.parametrize(
    "name", [name for name, made in LEARNERS.items() if isinstance(made(), Relative)]
)


@every_instance
@every_relative
def test_looking_at_the_posterior_changes_nothing(name, instance):
    """Asked after `observe`, when what was seen is not yet multiplied."""
    agent, other = made(name, instance, seed=3), made(name, instance, seed=3)
    for _ in range(120):
        for k in range(agent.prior.num_arms):
            agent.posterior(k)
            agent.belief(k)
        assert decisions(agent, instance, 1) == decisions(other, instance, 1)
        if agent.time % 7 == 0 and not agent.averages:
            assert agent.sampled_bandit.arms == other.sampled_bandit.arms


@every_relative
def test_recording_the_posterior_changes_nothing(name):
    prior, num_pulls = INSTANCES["four_arms"]
    setup = setup_of(name, prior, num_pulls, true_bandit(prior, num_pulls))
    times = np.arange(1, HORIZON + 1)
    done, other = (
        replicate(*setup, times, 5, seed=2, with_posterior=recorded) for recorded in (True, False)
    )
    assert np.array_equal(done.realised, other.realised)


# Stop and go on.


def through_json(agent):
    """Stop a learner and let another one go on, by way of text."""
    data = agent.snapshot()
    read = json.loads(json.dumps(data, allow_nan=False))
    assert read == data
    return rs.restore(read)


@every_instance
@every_learner
def test_a_chain_of_learners_each_restored_from_the_last_is_one_learner(name, instance):
    """Stop at every step, in turn after `observe`, after `select`, and both."""
    agent, chain = made(name, instance, seed=3), made(name, instance, seed=3)
    for t in range(1, 43):
        if t % 3 != 1:
            chain = through_json(chain)
        if t % 3 != 2:
            chain.select()
            chain = through_json(chain)
        assert chain.time == agent.time == t
        assert decisions(chain, instance, 1) == decisions(agent, instance, 1)
    assert known(chain) == known(agent)
    assert chain.belief_state == agent.belief_state


@pytest.mark.parametrize("selected", [False, True])
@pytest.mark.parametrize("stop", [0, 1, 7, 100])
@every_learner
def test_a_restored_learner_goes_on_for_long(name, stop, selected):
    agent = made(name, "two_arms", seed=2**64 - 1)
    decisions(agent, "two_arms", stop)
    if selected:
        agent.select()
    other = through_json(agent)
    assert type(other) is type(agent)
    assert decisions(other, "two_arms", 300) == decisions(agent, "two_arms", 300)
    assert known(other) == known(agent)


@every_learner
def test_a_snapshot_is_a_copy_and_is_guarded(name):
    agent = made(name)
    decisions(agent, "four_arms", 9)
    data = agent.snapshot()
    kept = json.dumps(data)
    decisions(agent, "four_arms", 9)
    decisions(rs.restore(data), "four_arms", 9)
    assert json.dumps(data) == kept
    for broken in (None, [], {}, data | {"seed": 1}, data | {"num_pulls": 1}):
        with pytest.raises(rs.errors.ProblemError):
            rs.restore(broken)


# The engine and the online learner.


@pytest.mark.parametrize("inside", [True, False])
@every_instance
@every_learner
def test_the_engine_and_the_online_learner_do_the_same(name, instance, inside):
    prior, num_pulls = INSTANCES[instance]
    truth = true_bandit(prior, num_pulls, inside=inside)
    setup = setup_of(name, prior, num_pulls, truth)
    arms, states = trace(setup, HORIZON, seed=4)
    agent, world = made(name, instance, seed=4), World(truth, seed=4)
    phases, sums = [], np.zeros(2)
    for t in range(HORIZON):
        chosen = agent.select()
        assert chosen.tolist() == arms[t].tolist()
        seen, earned, expected = world.pull(chosen)
        assert seen.tolist() == states[t].tolist()
        sums += expected, earned
        agent.observe(seen)
        phases.append(agent.num_phases)
        if isinstance(agent.learner, Relative):
            assert agent.episode.number == agent.num_phases
    assert agent.belief_state == world.belief_state
    times = np.array([1, 2, 77, HORIZON])
    done = replicate(*setup, times, 1, seed=4)
    assert done.episodes[0].tolist() == [phases[t - 1] for t in times]
    assert done.expected[0, -1] == pytest.approx(sums[0], rel=1e-12)
    assert done.realised[0, -1] == pytest.approx(sums[1], rel=1e-12)


@every_learner
def test_another_start_and_replication(name):
    prior, num_pulls = INSTANCES["controlled"]
    start = rs.BeliefState([0, 1, 0], [3, 1, 20])
    truth = true_bandit(prior, num_pulls)
    chosen = learner(name, **OPTIONS.get(name, {}))
    setup = posed(prior, num_pulls, "myopic", 90, start=start, true_bandit=truth, learner=chosen)
    arms, states = trace(setup, 90, seed=8, replication=5)
    agent = rs.types.Agent(*setup, 8, 5)
    assert agent.belief_state == start
    world = World(truth, start=start, seed=8, replication=5)
    for t in range(90):
        assert agent.select().tolist() == arms[t].tolist()
        seen, _, _ = world.pull(agent.select())
        assert seen.tolist() == states[t].tolist()
        agent.observe(seen)
        agent = through_json(agent) if t % 20 == 0 else agent


@every_learner
def test_it_can_be_simulated(name):
    prior, num_pulls = INSTANCES["four_arms"]
    truth = true_bandit(prior, num_pulls)
    ran = rs.simulate(truth, made(name, seed=4), HORIZON, seed=4)
    arms, states = trace(setup_of(name, prior, num_pulls, truth), HORIZON, seed=4)
    assert np.array_equal(ran.arms, arms)
    assert np.array_equal(ran.states, states)


SMALL_RUN = """
import sys
import restive as rs
from test_learners import NAMES, setup_of, three_states
from learning_cases import true_bandit
from learning_cases import trace
truth = true_bandit(*three_states())
for name in NAMES:
    setup = setup_of(name, *three_states(), truth, horizon=60)
    arms, states = trace(setup, 60, seed=6)
    sys.stdout.write(name + arms.tobytes().hex() + states.tobytes().hex())
"""


def test_the_same_decisions_without_jit():
    found = []
    for disabled in ("0", "1"):
        environment = os.environ | {
            "NUMBA_DISABLE_JIT": disabled,
            "PYTHONPATH": os.path.dirname(__file__),
        }
        command = [sys.executable, "-W", "error", "-c", SMALL_RUN]
        ran = subprocess.run(command, env=environment, capture_output=True, check=False, text=True)
        assert ran.returncode == 0, ran.stderr[-2000:]
        found.append(ran.stdout)
    assert len(found[0]) > 1000 * len(NAMES)
    assert found[0] == found[1]


# Learning.

GOOD, BAD = rs.gilbert_elliott(0.85, 0.9), rs.gilbert_elliott(0.1, 0.15)

# The radii of both are those of proofs, too wide for so few steps.
LEARNING = {
    "restless_ucb": {"exploration": 20, "scale": 0.1},
}


@pytest.mark.parametrize("best", [0, 1, 2])
@every_learner
def test_an_arm_that_is_nearly_always_good_is_found(name, best):
    """In the last third of 3,000 steps the learner earns what the oracle does, nearly.

    The good candidate comes first in the prior. Certainty equivalence takes the first of equally
    likely ones: so it takes unseen arms for good and tries them. Were the bad one first, it could
    stay with a bad arm for ever, since it holds the others to be no better.
    """
    prior = rs.IndependentPrior([rs.ArmPrior([GOOD, BAD])] * 3)
    truth = rs.RestlessBandit([GOOD if k == best else BAD for k in range(3)], 1)
    chosen = learner(name, **LEARNING.get(name, {}))
    setup = posed(prior, 1, "whittle", 3000, true_bandit=truth, learner=chosen)
    done = replicate(*setup, np.array([2000, 3000]), 4, seed=best, threads=1)
    late = np.diff(done.expected, axis=1).mean()
    oracle = np.diff(done.oracle_expected, axis=1).mean()
    assert oracle > 800
    assert late > 0.9 * oracle


# Nothing unseen is seen.


def reachable(thing):
    """Return everything that an object holds, directly or not."""
    found, waiting = {}, [thing]
    while waiting:
        each = waiting.pop()
        if id(each) in found or isinstance(each, types.ModuleType | type):
            continue
        found[id(each)] = each
        if isinstance(each, types.FunctionType):  # what it closes over, not its module
            waiting += each.__closure__ or ()
        else:
            waiting += gc.get_referents(each)
    return found


@every_learner
def test_a_learner_holds_no_world(name):
    prior, num_pulls = INSTANCES["four_arms"]
    truth = true_bandit(prior, num_pulls, inside=False)
    world = World(truth, seed=1)
    agent = made(name)
    for _ in range(30):
        agent.observe(world.pull(agent.select())[0])
    held = reachable(agent)
    assert len(held) > 10
    assert not any(isinstance(each, World) for each in held.values())
    secrets = [truth, *truth.arms, *world._tables, world._last_state, world._seen]
    secrets += [matrix for arm in truth.arms for matrix in (arm.active, arm.passive)]
    assert not held.keys() & set(map(id, secrets))


class HiddenChains:
    """Arms whose chains move every step, seen or not.

    What is seen of pulled arms is a function of (time, arm), and they are put into that state.
    """

    def __init__(self, arms, script, seed):
        self.arms, self.script = arms, script
        self.rng = np.random.default_rng(seed)
        self.states = [int(self.rng.integers(arm.num_states)) for arm in arms]
        self.time = 0

    def pull(self, chosen):
        for k in chosen:
            self.states[k] = int(self.script[self.time, k] * self.arms[k].num_states)
        seen = [self.states[k] for k in chosen]
        for k, arm in enumerate(self.arms):
            matrix = arm.active if k in chosen else arm.passive
            self.states[k] = int(self.rng.choice(arm.num_states, p=matrix[self.states[k]]))
        self.time += 1
        return seen


@every_instance
@every_learner
def test_hidden_states_decide_nothing(name, instance):
    """Two worlds in which the same is seen, and the arms that are not seen differ."""
    prior, num_pulls = INSTANCES[instance]
    arms = true_bandit(prior, num_pulls).arms
    agents = [made(name, instance, seed=2) for _ in range(2)]
    worlds = [HiddenChains(arms, SCRIPT, seed) for seed in (1, 2)]
    differed = 0
    for _ in range(60):
        chosen = [agent.select().tolist() for agent in agents]
        assert chosen[0] == chosen[1]
        differed += int(worlds[0].states != worlds[1].states)
        for agent, world in zip(agents, worlds, strict=True):
            agent.observe(world.pull(chosen[0]))
    assert differed > 20
    assert known(agents[0]) == known(agents[1])
