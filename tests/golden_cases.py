"""Golden bits: the numbers that no rearrangement may change, and the form in which they are kept.

A case is a function that returns values: arrays, numbers and plain data. What is stored of it is a
digest of each of its parts and a few of its numbers, so that a failure says which part of which
case differs and roughly how. Digests are of values, not of spellings: keys that are renamed are
entered in RENAMED, and wording, versions and times are left out.

Make the file again, only where numbers are meant to change: `python tests/golden_cases.py`.
"""

from __future__ import annotations

import os

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # as the tests do

import io
import json
import sys
import tempfile
import tomllib
from contextlib import contextmanager, redirect_stderr, redirect_stdout
from dataclasses import fields, is_dataclass
from datetime import UTC, datetime, timedelta
from functools import cache, partial
from hashlib import sha256
from math import fsum, isfinite
from pathlib import Path

import numpy as np

import restive as rs
from log_cases import log_of

# Everything internal that the cases need.
from restive.cli import main as command_line
from restive.plan.policies.registry import policy_mappings

ROOT = Path(__file__).parent.parent
STORED = Path(__file__).parent / "stored" / "golden.json"
EXAMPLES = ROOT / "examples"

RENAMED: dict[str, str] = {}
"""Old name of a key, field, learner, mapping or kind of event, and its new one."""

OLD = {new: old for old, new in RENAMED.items()}

LEFT_OUT = {
    "why_simulated",
    "simulated",
    # wording, versions, times and places; by their old names
    *("advice", "baseline", "checksum", "finding", "format", "hint", "label", "last_ended"),
    *("made_by", "method", "note", "notes", "question", "remarks", "sentence", "source", "text"),
    *("title", "truth_method", "verdict", "version", "at", "began_at", "recorded", "numbers"),
    *("digest", "fingerprint", "actor", "span", "path", "answer", "log", "durability"),
    *(
        "averaged",
        "kinds_learnt",
        "kinds_due",
        "unshown",
        "forget_after",
    ),  # which answers did not have then
}
NEW_OPTIONS = {"draws", "learn_kinds"}  # of learners that had none when the numbers were stored


def memory_of(live):
    """Everything that follows from a live agent's journal, as plain data."""
    with live._session.reading() as memory:
        data = memory.to_data()
    return {key: value for key, value in data.items() if key not in ("seq", "digest")}


# ---------------------------------------------------------------- the canonical form


def old(name):
    """Return the name that something had when the numbers were stored."""
    return OLD.get(str(name), str(name))


def opened(value):
    """Return an object of the package as a dict of its fields, and anything else as it is."""
    if isinstance(value, rs.Arm):
        names = ("active", "passive", "rewards", "passive_rewards", "states")
        return {name: getattr(value, name) for name in names}
    if isinstance(value, rs.RestlessBandit):
        return {"arms": value.arms, "num_pulls": value.num_pulls}
    if isinstance(value, rs.BeliefState):
        return {"last_state": value.last_state, "elapsed": value.elapsed}
    if is_dataclass(value):
        names = [field.name for field in fields(value) if not field.name.startswith("_")]
        return {name: getattr(value, name) for name in names}
    if hasattr(value, "_asdict"):
        return value._asdict()
    return value


def kept(mapping):
    """Return what counts of a dict, sorted by its old keys."""
    if mapping.keys() >= NEW_OPTIONS:
        mapping = {key: value for key, value in mapping.items() if key not in NEW_OPTIONS}
    renamed = {old(key): value for key, value in mapping.items()}
    return {key: renamed[key] for key in sorted(renamed) if key not in LEFT_OUT}


def tokens(value):
    """Yield a value as bytes that say its type and what it is, to the bit."""
    value = opened(value)
    if isinstance(value, np.ndarray) and value.dtype.kind in "OUST":
        value = value.tolist()
    if value is None or isinstance(value, bool | np.bool_):
        yield f"{None if value is None else bool(value)};".encode()
    elif isinstance(value, int | np.integer):
        yield f"i{int(value)};".encode()
    elif isinstance(value, float | np.floating):
        yield f"f{float(value).hex()};".encode()
    elif isinstance(value, str):
        yield f"s{old(value)!r};".encode()
    elif isinstance(value, bytes):
        yield f"b{value.hex()};".encode()
    elif isinstance(value, np.ndarray):
        plain = np.ascontiguousarray(value).astype(value.dtype.newbyteorder("<"))
        yield f"a{plain.dtype.str}{value.shape};".encode()
        yield plain.tobytes()
    elif isinstance(value, dict):
        yield b"{"
        for key, entry in kept(value).items():
            yield f"{key!r}:".encode()
            yield from tokens(entry)
        yield b"}"
    elif isinstance(value, list | tuple):
        yield b"["
        for entry in value:
            yield from tokens(entry)
        yield b"]"
    else:
        raise TypeError(f"no canonical form of {type(value).__name__}: {value!r:.100}")


def numbers(value):
    """Yield the numbers of a value, in the order of its canonical form."""
    value = opened(value)
    if isinstance(value, dict):
        for entry in kept(value).values():
            yield from numbers(entry)
    elif isinstance(value, list | tuple):
        for entry in value:
            yield from numbers(entry)
    elif isinstance(value, np.ndarray) and value.dtype.kind in "biuf":
        yield from map(float, value.ravel())
    elif isinstance(value, bool | np.bool_ | int | np.integer | float | np.floating):
        yield float(value)


def gist(value):
    """Return what is stored of a part: its digest, and how many numbers, their sum and the last."""
    digest = sha256()
    for token in tokens(value):
        digest.update(token)
    found = list(numbers(value))
    total = fsum(number for number in found if isfinite(number))
    last = found[-1] if found else None
    return [digest.hexdigest()[:16], len(found), repr(total), repr(last)]


def golden(name):
    """Return what is to be stored of a case, by part."""
    with np.errstate(divide="raise", over="raise", invalid="raise"):
        values = CASES[name]()
    return {key: gist(value) for key, value in kept(values).items()}


CASES = {}


def case(*names):
    """Enter a function as a case, under a name whose parts are old names."""

    def enter(function):
        CASES["/".join(map(old, names))] = function
        return function

    return enter


def cases(names, *before, options=()):
    """Enter a function of a name as a case for each name."""

    def enter(function):
        for name in names:
            case(*before, name)(partial(function, name))
        return function

    return enter


# ---------------------------------------------------------------- problems and priors


def random_arm(rng, size, rewards, controlled=True, spread=0.4):
    def matrix():
        return (1 - spread) * rng.dirichlet(np.full(size, 0.7), size) + spread / size

    active = matrix()
    return rs.Arm(active, matrix() if controlled else None, rewards)


def random_law(rng, size, count, rewards, controlled=True):
    arms = [random_arm(rng, size, rewards, controlled) for _ in range(count)]
    return rs.ArmPrior(arms, rng.random(count) + 0.1)


def paying(arm, passive_rewards):
    return rs.Arm(arm.active, arm.passive, arm.rewards, passive_rewards)


def channel_bandit():
    levels = [(0.3, 0.7), (0.4, 0.6), (0.5, 0.5), (0.6, 0.4)]
    return rs.RestlessBandit([rs.gilbert_elliott(*pair) for pair in levels], 2)


def three_state_bandit():
    rng = np.random.default_rng(12)
    return rs.RestlessBandit([random_arm(rng, 3, [0, 0.5, 1], False) for _ in range(3)], 1)


def controlled_bandit():
    rng = np.random.default_rng(11)
    arms = [random_arm(rng, 2, [0.1, 0.8]), random_arm(rng, 3, [0.1, 0.3, 1])]
    return rs.RestlessBandit([*arms, arms[0]], 1)


def paying_bandit():
    rng = np.random.default_rng(13)
    arms = [random_arm(rng, 2, [0.0, 1.0]) for _ in range(3)]
    return rs.RestlessBandit([paying(arm, [-0.1, 0.9 - 0.1 * k]) for k, arm in enumerate(arms)], 1)


BANDITS = {
    "channels": channel_bandit,
    "three_states": three_state_bandit,
    "controlled": controlled_bandit,
    "paying": paying_bandit,
}


def channel_prior():
    levels = [(0.1, 0.9), (0.3, 0.6), (0.5, 0.5), (0.8, 0.3), (0.2, 0.2), (0.7, 0.9)]
    shared = rs.ArmPrior([rs.gilbert_elliott(*pair) for pair in levels])
    own = rs.ArmPrior([rs.gilbert_elliott(*pair) for pair in levels[2:]], [3, 1, 2, 5])
    return rs.IndependentPrior([shared, own, shared, shared]), 2


def three_state_prior():
    rng = np.random.default_rng(12)
    three, two = random_law(rng, 3, 5, [0, 0.5, 1]), random_law(rng, 2, 3, [0.2, 0.9])
    many = random_law(rng, 3, 19, [1, 0, 0.3], controlled=False)
    return rs.IndependentPrior([three, two, many, three]), 2


def pooled_prior():
    rng = np.random.default_rng(15)
    law, other = random_law(rng, 2, 9, [0, 1]), random_law(rng, 2, 4, [0, 1])
    return rs.IndependentPrior([law, other, law, law], pooled=[[0, 2, 3]]), 2


def joint_prior(count=7, seed=13, passive=False):
    rng = np.random.default_rng(seed)
    paid = rng.normal(size=(3, 2))
    bandits = []
    for _ in range(count):
        arms = [random_arm(rng, 2, [0, 1 - 0.1 * k]) for k in range(3)]
        if passive:
            arms = [paying(arm, paid[k]) for k, arm in enumerate(arms)]
        bandits.append(rs.RestlessBandit(arms, 1))
    weights = rng.random(count) + 0.2
    return rs.JointPrior(bandits, weights), 1


def paying_prior():
    rng = np.random.default_rng(16)
    laws = [random_law(rng, size, 5, np.linspace(0, 1, size)) for size in (2, 3, 2)]
    paid = [rng.normal(size=size) for size in (2, 3, 2)]
    return rs.IndependentPrior(
        rs.ArmPrior([paying(arm, pay) for arm in law.candidates], law.weights)
        for law, pay in zip(laws, paid, strict=True)
    ), 1


def small_prior():
    rng = np.random.default_rng(22)
    return rs.IndependentPrior([random_law(rng, 2, 2, [0, 1]) for _ in range(2)]), 1


def beta(passive_rewards=None):
    return rs.beta_prior(4, (1, 2), (2, 1), passive_rewards=passive_rewards, particles=32), 2


def dirichlet(passive_rewards=None):
    alphas = [[2, 1, 1], [1, 1, 0], [1, 1, 3]]
    alike = rs.DirichletArmPrior(alphas, None, [0, 0.5, 1], passive_rewards, 32)
    passive = [[3, 1, 1], [2, 1, 1], [1, 2, 1]]
    unlike = rs.DirichletArmPrior(alphas, passive, [0, 0.5, 1], passive_rewards, 32)
    return rs.IndependentPrior([alike, unlike, alike]), 1


def mixed():
    laws = [*beta()[0].arms[:2], *channel_prior()[0].arms[:2], *dirichlet()[0].arms[:2]]
    return rs.IndependentPrior(laws, pooled=[[0, 1]]), 2


PRIORS = {
    "channels": channel_prior,
    "three_states": three_state_prior,
    "pooled": pooled_prior,
    "joint": joint_prior,
    "paying": paying_prior,
    "joint_paying": lambda: joint_prior(passive=True),
    "beta": beta,
    "beta_paying": lambda: beta([0.1, 0.5]),
    "dirichlet": dirichlet,
    "dirichlet_paying": lambda: dirichlet([0.0, 0.2, 0.7]),
    "mixed": mixed,
}
NEWER = (
    "mean_index",
    "ucwhittle",
    "wiql",
    "qwi",
)  # than the stored numbers; they have tests of their own
LEARNERS = tuple(name for name in rs.registry.LEARNERS if name not in NEWER)
MAPPINGS = tuple(row.name for row in policy_mappings())


# ---------------------------------------------------------------- learners


def curves(prior, num_pulls, mapping="whittle", horizon=300, **options):
    """Regret curves with their samples, of expected and of realised rewards."""
    found = {}
    for rewards in ("expected", "realised"):
        curve = rs.bayesian_regret(
            prior, num_pulls, mapping, horizon, replications=3, seed=5, times=6, rewards=rewards,
            **options,
        )  # fmt: skip
        found[rewards] = curve_of(curve)
    return found


def curve_of(curve):
    names = ("times", "mean", "stderr", "lower", "upper", "average_reward", "num_episodes")
    found = {name: getattr(curve, name) for name in names}
    return found | {"truth": curve.average_reward_of_truth, "samples": curve.samples}


@cases(LEARNERS, "learner", "channels")
def learner_on_channels(name):
    prior, num_pulls = channel_prior()
    return {
        "two pulls": tried(curves, prior, num_pulls, learner=name),
        "one pull": tried(curves, prior, 1, learner=name),
        "steps": tried(steps_of, name, prior, num_pulls),
    }


@cases(PRIORS, "learner", "every")
def every_learner_on(name):
    prior, num_pulls = PRIORS[name]()
    found = {}
    for learner in LEARNERS:
        found[learner] = tried(
            curves, prior, num_pulls, horizon=120, learner=learner, mixing_time=4
        )
    return found


def tried(function, *args, **options):
    """Return what a function returns, or that it is refused."""
    try:
        return function(*args, **options)
    except rs.RestiveError as error:
        return f"refused: {type(error).__name__}"


@cases(MAPPINGS, "mapping", "learned")
def learning_with(name):
    found = {}
    for make in (small_prior, lambda: joint_prior(3), lambda: joint_prior(3, passive=True)):
        prior, num_pulls = make()
        found[str(len(found))] = curves(prior, num_pulls, name, horizon=60)
    return found


@case("learner", "options")
def options_of_learners():
    prior, num_pulls = channel_prior()
    start = rs.BeliefState([0, 1, 1, 0], [3, 1, 40, 1000])

    def own(task, seed):
        return OwnLearner(task.num_arms, task.num_pulls)

    def own_rule(arm):
        return rs.theory.belief_table(arm, 9) @ arm.rewards + 0.01 * np.arange(9)

    return {
        "doubling": curves(prior, num_pulls, doubling=True),
        "start": curves(prior, num_pulls, start=start, max_elapsed=20),
        "exact": curves(*small_prior(), baseline="exact"),
        "epsilon": curves(prior, num_pulls, learner={"name": "epsilon_greedy", "epsilon": 0.3}),
        "own learner": curves(prior, num_pulls, horizon=50, learner=own),
        "own rule": curves(prior, num_pulls, own_rule),
        "own mapping": curves(prior, num_pulls, lambda bandit: rs.myopic(bandit), horizon=50),  # noqa: PLW0108 (nameless)
        "continuous doubling": curves(*beta(), doubling=True),
        "continuous start": curves(*beta(), start=start),
    }


class OwnLearner:
    """Arms in turn."""

    def __init__(self, num_arms, num_pulls):
        self.num_arms, self.num_pulls, self.time = num_arms, num_pulls, 0

    def select(self):
        self.time += 1
        return sorted((self.time + i) % self.num_arms for i in range(self.num_pulls))

    def observe(self, states):
        self.seen = states


def truth_of(prior, num_pulls, seed=5):
    """Return a bandit that is in the prior, or the arms that it thinks typical."""
    rng = np.random.default_rng(seed)
    if isinstance(prior, rs.JointPrior):
        return prior.bandits[rng.integers(len(prior.bandits))]
    arms = []
    for law in prior.arms:
        listed = isinstance(law, rs.ArmPrior)
        arms.append(law.candidates[rng.integers(len(law.candidates))] if listed else law.typical)
    return rs.RestlessBandit(arms, num_pulls)


def steps_of(learner, prior, num_pulls, horizon=150, **options):
    """Return what an agent does step by step, and what it ends with."""
    agent = rs.make_learner(learner, prior, num_pulls, horizon=horizon, seed=3, **options)
    ran = rs.simulate(truth_of(prior, num_pulls), agent, horizon, seed=4)
    names = ("arms", "states", "rewards", "expected_rewards", "last_state", "elapsed", "episode")
    return {name: getattr(ran, name) for name in names} | {"snapshot": agent.snapshot()}


# ---------------------------------------------------------------- agents and their snapshots


def played(agent, bandit, steps, seed=8):
    """Play an agent in a world; return its choices and what it saw."""
    world = rs.World(bandit, seed=seed)
    arms, states = [], []
    for _ in range(steps):
        chosen = agent.select()
        seen, _, _ = world.pull(chosen)
        agent.observe(seen)
        arms.append(chosen.tolist())
        states.append(seen.tolist())
    return {"arms": arms, "states": states}


def known_to(agent):
    """Return what an agent of TSDE's family can be asked."""
    num_arms = agent.task.num_arms
    found = {"index": agent.index(), "beliefs": agent.beliefs(range(num_arms))}
    found["posterior"] = [posterior_of(agent.posterior(k)) for k in range(num_arms)]
    found["evidence"] = [agent.evidence(k).to_data() for k in range(num_arms)]
    found["explained"] = [explained(agent.explain(k)) for k in range(num_arms)]
    found["sampled"] = agent.sampled_bandit
    return found | {"episode": agent.episode, "state": agent.belief_state}


def explained(explanation):
    data = explanation.to_json()
    return {key: data[key] for key in data if key != "last_state"}


def posterior_of(found):
    return {
        "active": found.active,
        "passive": found.passive,
        "weights": found.weights,
        "log_evidence": found.log_evidence,
        "effective": found.effective,
        "mean": found.mean(),
        "quantiles": [found.quantile(q) for q in (0.05, 0.5, 0.95)],
    }


@cases(PRIORS, "agent")
def agent_on(name):
    prior, num_pulls = PRIORS[name]()
    agent = rs.TSDE(prior, num_pulls, seed=2, mixing_time=4)
    bandit = truth_of(prior, num_pulls)
    found = {"steps": played(agent, bandit, 120), "known": known_to(agent)}
    agent.skip(3)
    mask = np.ones(prior.num_arms, dtype=bool)
    mask[0] = False
    chosen = agent.select(1, mask)
    agent.observe([0])
    late = next(k for k in range(prior.num_arms) if k not in chosen)
    snapshot = json.loads(json.dumps(agent.snapshot()))
    again = rs.restore(snapshot)
    found |= {"chosen": chosen, "late": late, "snapshot": snapshot}
    found["after"] = played(agent, bandit, 40, seed=9)
    assert played(again, bandit, 40, seed=9) == found["after"]
    return found | {"last": agent.snapshot()}


@case("agent", "every", "snapshot")
def every_snapshot():
    found = {}
    for name in LEARNERS:
        for kind in ("channels", "beta", "mixed"):
            prior, num_pulls = PRIORS[kind]()
            found[f"{old(name)} {kind}"] = tried(
                steps_of, name, prior, num_pulls, 60, mixing_time=4
            )
    return found


# ---------------------------------------------------------------- mappings and what they earn


def values_of(bandit, mapping, **options):
    return rs.evaluate(bandit, mapping, **{"max_states": 5000, "steps": 300, **options})


@cases(MAPPINGS, "mapping")
def mapping_on_bandits(name):
    found = {}
    for kind, make in BANDITS.items():
        bandit = make()
        policy = tried(rs.registry.policy_mapping(name), bandit, max_states=20_000)
        if isinstance(policy, str):
            found[kind] = policy
            continue
        ran = rs.simulate(bandit, policy, 150, seed=6)
        one = {"arms": ran.arms, "states": ran.states, "rewards": ran.rewards}
        one["expected"] = ran.expected_rewards
        states = [rs.BeliefState(s, n) for s, n in zip(ran.last_state, ran.elapsed, strict=True)]
        if isinstance(policy, rs.types.IndexPolicy):
            one["tables"] = [policy.table(k) for k in range(bandit.num_arms)]
            one["index"] = np.array([policy.index(state) for state in states])
            one["rank"] = np.array([policy.rank(state) for state in states])
        if isinstance(policy, rs.types.BestIndexPolicy):
            one["candidates"] = policy.candidates
        if isinstance(policy, rs.types.OptimalPolicy):
            one |= {"average_reward": policy.average_reward, "bias": policy.bias}
        one["value"] = tried(values_of, bandit, policy)
        found[kind] = one
    return found


@case("mapping", "others")
def other_policies():
    found = {}
    for kind, make in BANDITS.items():
        bandit = make()
        policies = {
            "round_robin": rs.policies.round_robin(bandit),
            "random": rs.policies.random_policy(bandit, seed=3),
            "own": rs.policies.index_policy(
                bandit, lambda arm: arm.active[:, :1] @ np.arange(3.0)[None]
            ),
            "discounted": rs.whittle(bandit, discount=0.9),
        }
        for name, policy in policies.items():
            ran = rs.simulate(bandit, policy, 100, seed=6, hidden=name == "own")
            found[f"{kind} {name}"] = [ran.arms, ran.states, ran.rewards, ran.hidden_states]
        found[f"{kind} J"] = values_of(bandit, policies["discounted"])
        found[f"{kind} simulated"] = values_of(bandit, "whittle", max_states=5)
        start = rs.BeliefState([0] * bandit.num_arms, [7] * bandit.num_arms)
        found[f"{kind} start"] = values_of(bandit, "myopic", start=start, max_elapsed=12)
        found[f"{kind} bound"] = [
            rs.relaxation_bound(bandit),
            rs.relaxation_bound(bandit, max_elapsed=6),
        ]
    return found


@case("whittle")
def whittle_indices():
    arms = [arm for make in BANDITS.values() for arm in make().arms]
    arms += rs.zoo.load("non-indexable").bandit.arms[:1]
    found = {}
    for k, arm in enumerate(arms):
        for discount in (1.0, 0.95, 0.5):
            index = rs.policies.whittle_index(arm, discount=discount)
            found[f"{k} {discount}"] = [index.index, index.upper, index.indexable, index.limit]
        found[f"{k} long"] = rs.policies.whittle_index(arm, max_elapsed=200).index
    found["channels"] = rs.theory.channel_whittle_index([0.1, 0.5, 0.9], [0.8, 0.5, 0.05], 40)
    return found


@case("chains")
def chains_and_beliefs():
    found = {}
    arms = [arm for make in BANDITS.values() for arm in make().arms]
    # those of later instances are not among the stored ones
    arms += [arm for name in rs.zoo.names() for arm in zoo_arms(name)[:2] if name not in LATER]
    for k, arm in enumerate(arms):
        reduced = [rs.theory.reduce_arm(arm), rs.theory.reduce_arm(arm, discount=0.9)]
        found[f"{k}"] = {
            "beliefs": [rs.theory.belief_table(arm, 30), tried(rs.theory.belief_table, arm)],
            "mixing": [tried(rs.theory.mixing_time, arm), tried(rs.theory.mixing_time, arm, 0.01)],
            "stationary": [tried(rs.theory.stationary, part) for part in (arm.active, arm.passive)],
            "reduced": [[one.pulled, one.own_reward, one.potential] for one in reduced],
        }
    return found


LATER = ("calls-8-switch", "channels-16", "channels-16-switch", "channels-16-drift")


def zoo_arms(name):
    found = rs.zoo.load(name)
    return () if found.bandit is None else found.bandit.arms


# ---------------------------------------------------------------- the zoo


@cases(rs.zoo.names(), "zoo")
def zoo_instance(name):
    found = rs.zoo.load(name)
    prior, bandit = found.prior, found.bandit
    values = {"num_pulls": found.num_pulls, "horizon": found.horizon, "prior": prior_of(prior)}
    values["in_prior"] = found.truth_in_prior
    if bandit is None:
        return values
    if isinstance(bandit, rs.types.ChangingBandit):
        return values | {"begins": list(bandit.begins), "phases": list(bandit.bandits)}
    values |= {"bandit": bandit, "bound": tried(rs.relaxation_bound, bandit)}
    for mapping in MAPPINGS:
        if mapping not in SLOW.get(name, ()):
            values[mapping] = tried(values_of, bandit, mapping, max_states=2000, replications=4)
    return values


SLOW: dict[str, tuple[str, ...]] = {}


def prior_of(prior):
    if isinstance(prior, rs.JointPrior):
        return [prior.bandits, prior.weights]
    laws = list({id(law): law for law in prior.arms}.values())
    return [
        [law.candidates, law.weights] if isinstance(law, rs.ArmPrior) else law.to_data()
        for law in laws
    ]


@case("zoo", "generators")
def zoo_generators():
    zoo = rs.zoo
    makers = {
        "dirichlet": partial(zoo.random_dirichlet, 3, 1, seed=1),
        "sticky": partial(zoo.random_sticky, 3, 1, seed=1),
        "near_deterministic": partial(zoo.random_near_deterministic, 3, 1, seed=1),
        "controlled": partial(zoo.random_controlled, 3, 1, seed=2, num_states=3),
    }
    found = {}
    for name, make in makers.items():
        made = make()
        found[name] = [made.bandit, prior_of(made.prior), rs.relaxation_bound(made.bandit)]
    return found


# ---------------------------------------------------------------- files and commands


def printed(*words):
    """Run a command in this process; return what it prints, read as JSON."""
    before, out = sys.argv, io.StringIO()
    sys.argv = ["restive", *map(str, words)]
    try:
        with redirect_stdout(out), redirect_stderr(io.StringIO()):
            command_line()
    except SystemExit as ended:
        if ended.code:
            raise AssertionError(f"{words}: status {ended.code}") from ended
    finally:
        sys.argv = before
    return json.loads(out.getvalue())


@contextmanager
def folder():
    with tempfile.TemporaryDirectory() as made:
        yield Path(made)


def _as_stored(plan):
    """Return a plan without what it says since the numbers were stored."""
    for row in (*plan["arms"], *plan["policies"]):  # who is always seen, whose J needs the start
        row.pop("seen", None)
        row.pop("depends_on_start", None)
    return {key: value for key, value in plan.items() if key != "seeing"}  # what seeing is worth


@case("plan")
def plans():
    found = {"outreach": _as_stored(printed("plan", EXAMPLES / "outreach.toml", "--json"))}
    words = ("plan", EXAMPLES / "paper_frequentist.toml", "--json", "--discount", "0.9")
    with folder() as here:
        table = here / "table.npz"
        found["channels"] = _as_stored(printed(*words, "--index-table", table))
        with np.load(table) as arrays:
            found["table"] = dict(arrays)
        text = controlled_bandit().to_toml()
        (here / "problem.toml").write_text(text)
        found["controlled"] = _as_stored(printed("plan", here / "problem.toml", "--json"))
    found["problem"] = tomllib.loads(text)
    for name in ("outreach", "channels", "controlled"):
        del found[name]["recommendation"]  # made of the other numbers; test_recommendation has it
    return found


@cache
def example_log(name):
    where = EXAMPLES / "logs" / f"{name}.csv"
    if name == "channels":
        return rs.load_log(where, time="slot", arm="channel", state_from="signal_db > 12")
    return rs.load_log(
        where, time="week_of", arm="person", state="outcome", states=["hung_up", "listened"],
        step="1w", by="region",
    )  # fmt: skip


def simulated_log(controlled=False, size=3):
    """A log of arms of which each is seen now and then."""
    rng = np.random.default_rng(4)
    rows = []
    for k in range(8):
        arm, state = random_arm(rng, size, np.arange(size), controlled), 0
        for t in range(120):
            pulled = rng.random() < 0.5
            if pulled:
                rows.append((k, t, state))
            law = arm.active if pulled else arm.passive
            state = int(rng.choice(size, p=law[state]))
    return log_of(*np.array(rows).T)


FITS = {
    "channels": lambda: (example_log("channels"), {}),
    "outreach": lambda: (example_log("outreach"), {}),
    "three_states": lambda: (simulated_log(), {}),
    "controlled": lambda: (
        simulated_log(True, 2), {"controlled": True, "passive_rewards": [0, 0.9]}
    ),
    "continuous": lambda: (
        simulated_log(False, 2), {"prior": rs.beta_prior(1, particles=32).arms[0]}
    ),
}  # fmt: skip


@cases(FITS, "fit")
def fit_of(name):
    log, options = FITS[name]()
    fitted = rs.fit_log(log, seed=1, **options)
    table = fitted.arms
    names = ("sightings", "last_state", "elapsed", "active", "passive", "low", "high")
    found = {"arms": {part: getattr(table, part) for part in names}}
    found["names"] = list(table.names)
    found["checks"] = {
        check.name: [check.size, check.p, check.z, check.arms_off, check.num_arms, check.worst_arm]
        for check in fitted.checks
    }
    found["held_out"] = fitted.held_out
    with folder() as here:
        rs.write_fit(fitted, here, num_pulls=2)
        found["problem"] = tomllib.loads((here / "problem.toml").read_text())
        found["prior_file"] = json.loads((here / "prior.json").read_text())
        loaded = rs.load_prior(here / "prior.json")
        found["prior"] = prior_of(loaded.prior)
    return found


@cases(FITS, "replay")
def replay_of(name):
    log, options = FITS[name]()
    policies = ("whittle", "myopic", "best_fixed", "round_robin", "random", "tsde", "ucb1")
    if name == "continuous":
        policies = policies[:5]
    found = rs.replay_log(log, 2, policies, worlds=20, seed=2, anyway=True, **options)
    numbers = {
        one.policy + ("" if i < len(policies) else " hindsight"): [
            one.per_step, one.low, one.high,
        ]
        for i, one in enumerate(found.policies)
    }  # fmt: skip
    calibration = found.calibration
    if calibration is not None:
        own = {f.name: getattr(calibration, f.name) for f in fields(calibration)}
        del own["what"]  # words
        calibration = [own, calibration.low, calibration.high]
    return {
        "policies": numbers,
        "logged": [found.split, found.num_steps, found.logged_per_step, found.logged_pulls],
        "calibration": calibration,
    }


# ---------------------------------------------------------------- studies

STUDIES = {
    "frequentist": """
kind = "frequentist"
policy_mappings = ["myopic", "whittle"]
learners = ["tsde", "ucb1", {name = "epsilon_greedy", epsilon = 0.2}]
horizon = 40
times = 8
seed = 7
posterior = true
replications = 30
[problem]
num_pulls = 1
[[problem.arm]]
p01 = 0.2
p11 = 0.8
[[problem.arm]]
p01 = 0.5
p11 = 0.2
count = 2
[prior]
levels = [0.2, 0.5, 0.8]
""",
    "bayesian": """
kind = "bayesian"
policy_mappings = ["best_fixed", "whittle"]
horizon = 40
times = 8
seed = 7
num_pulls = 1
replications = 30
[prior]
levels = [0.2, 0.5, 0.8]
num_arms = 3
""",
    "continuous": """
kind = "bayesian"
learners = ["tsde", "certainty_equivalence"]
policy_mappings = ["whittle", "best_fixed"]
horizon = 60
times = 6
seed = 3
num_pulls = 2
replications = 12
[[prior.arm]]
beta = {p01 = [1, 2], particles = 32}
count = 3
pooled = true
[[prior.arm]]
[prior.arm.dirichlet]
active = [[1, 1, 0], [0, 1, 1], [1, 1, 1]]
rewards = [0, 0.4, 0.8]
particles = 32
[[prior.arm]]
[[prior.arm.candidate]]
p01 = 0.2
p11 = 0.7
[[prior.arm.candidate]]
p01 = 0.6
p11 = 0.4
""",
}
SUMMED = ("regret", "realised_regret", "average_reward", "oracle_reward", "num_episodes")


@cases(STUDIES, "study")
def study_of(name):
    found = {}
    with folder() as here:
        (here / "study.toml").write_text(STUDIES[name])
        study = rs.load_study(here / "study.toml")
        results = here / "results"
        ledger = rs.run_study(study, results, executor="serial")
        for i, one in enumerate(ledger.study.cases):
            found[f"chunks {i}"] = [[first, arrays] for first, arrays in ledger.chunks(one)]
        for i, summary in enumerate(rs.load_results(results)):
            found[f"summary {i}"] = {part: getattr(summary, part) for part in SUMMED} | {
                "truth_weights": summary.truth_weights,
                "slope": summary.slope,
                "truth_rewards": summary.truth_rewards,
                "truth_reward": summary.truth_reward,
                "final_regrets": summary.final_regrets,
                "bound": [summary.relaxation_bound, summary.bound_regret],
                "band": [summary.regret.lower, summary.regret.upper],
            }
        for table in ("curves", "replications", *(["posterior"] if name == "frequentist" else [])):
            path = rs.export_results(results, format="npz", table=table, path=here / f"{table}.npz")
            with np.load(path) as arrays:
                found[table] = {key: arrays[key] for key in arrays.files if key != "case"}
    return found


# ---------------------------------------------------------------- live agents


def live_prior(kind):
    candidates = [
        rs.Arm([[1 - a, a], [0.3, 0.7]], [[0.8, 0.2], [1 - b, b]], [0, 1])
        for a in (0.3, 0.6)
        for b in (0.4, 0.8)
    ]
    controlled, grid = rs.ArmPrior(candidates), rs.grid_prior([0.2, 0.8], 1).arms[0]
    beta = rs.beta_prior(1, (2, 1), (3, 2), particles=32).arms[0]
    laws = {"finite": [controlled, grid], "mixed": [grid, beta, controlled]}
    if kind == "joint":
        levels = [(a, b) for a in (0.2, 0.6) for b in (0.5, 0.9)]
        return rs.JointPrior(
            [rs.RestlessBandit([rs.gilbert_elliott(*pair)] * 6, 3) for pair in levels]
        )
    return rs.IndependentPrior([laws[kind][k % len(laws[kind])] for k in range(6)])


def lived(path, kind):
    """Run a live agent through all that can happen to it, as `stored/make_live.py` does."""
    start = datetime(2026, 11, 16, tzinfo=UTC)
    moments = iter(start + timedelta(minutes=i) for i in range(100_000))
    live = rs.LiveAgent.create(
        path, live_prior(kind), 3, clock=rs.Clock.given(), seed=11, audit_pulls=1,
        missing="as-not-pulled", names=list("ABCDEF"), outcomes={"listened": 1},
        now=lambda: next(moments), durability="process",
    )  # fmt: skip
    receipts = []
    for tick in (0, 1, 2, 5, 6, 7, 8):
        decision = live.decide(tick=tick, request=f"tick {tick}", skip=tick == 5)
        first, second, third = decision.arms
        receipts.append(live.record({first: tick % 2, second: 1}))
        if tick == 2 and kind != "joint":
            receipts.append(live.join({"G": "0", "H": "1"}, {"H": (0, 4)}))
            receipts.append(live.leave(["A"]))
            live.snapshot()
        if tick == 5:
            receipts.append(live.record({third: 0}, tick))
        if tick == 6:
            other = next(name for name in "BCDEFGH" if name not in decision.arms)
            receipts.append(live.record({}, instead={other: 1}))
        if tick == 7:
            receipts.append(live.record({live.decision(6).arms[2]: 0}, 6))
            receipts.append(live.correct({first: 0}, 7, "a slip"))
    return live, receipts


def told(live):
    """Return all that a live agent can be asked."""
    status = live.status()
    alarms = [{"seq": a.seq, "name": a.name, "tick": a.tick} for a in status.alarms]
    # younger than the digests
    assert (status.forget_after, status.forgotten) == (None, ())
    younger = ("forget_after", "forgotten", "missing", "leaving", "waiting_pulls", "left",
               "left_last", "always_seen")  # fmt: skip
    state = {name: value for name, value in vars(status).items() if name not in younger}
    found = {"memory": memory_of(live), "status": state | {"alarms": alarms}}
    found["events"] = [[one.kind, one.tick, one.request, one.body] for one in live.events()]
    names = [row.name for row in live.arms()]
    ticks = [one.tick for one in live.events() if one.kind == "decide"]
    decisions = [live.decision(tick) for tick in ticks]
    found["decisions"] = [[one.arms, one.expected, one.audit, one.index] for one in decisions]
    found["results"] = [live.results(tick) for tick in ticks]
    found["arms"] = list(live.arms())
    found["beliefs"] = {name: live.belief(name) for name in names}
    found["posteriors"] = {name: posterior_of(live.posterior(name)) for name in names}
    found["forecast"] = live.forecast(3, 8, seed=1)
    found["rewards"] = live.rewards()
    found["known"] = [live.known(), live.entropy(), live.learning(), live.headroom()]
    columns, rows = live.table("pulls")
    found["pulls"] = dict(zip(columns, zip(*rows, strict=True), strict=True))
    return found


@cases(("finite", "mixed", "joint"), "live")
def live_agent(kind):
    with folder() as here:
        live, receipts = lived(here / "live.db", kind)
        found = told(live) | {"receipts": receipts}
        live.close()
        with rs.LiveAgent.open(here / "live.db") as again:
            found["next"] = again.decide(tick=9, skip=True).arms
    return found


@case("live", "stored")
def stored_live_agent():
    with folder() as here:
        path = here / "live_1.db"
        path.write_bytes((STORED.parent / "live_1.db").read_bytes())
        now = datetime(2026, 11, 17, tzinfo=UTC)
        with rs.LiveAgent.open(path, now=lambda: now) as live:
            return told(live)


@case("live", "alarms")
def alarms_of_a_live_agent():
    """Arms that do much worse than the prior allows, and results that are missing."""
    with folder() as here:
        now = datetime(2026, 11, 17, tzinfo=UTC)
        prior = rs.grid_prior([0.7, 0.8, 0.9], 12)
        live = rs.LiveAgent.create(
            here / "live.db", prior, 4, clock=rs.Clock.given(), seed=3, durability="process",
            now=lambda: now,
        )  # fmt: skip
        rng = np.random.default_rng(2)
        for tick in range(40):
            arms = live.decide(tick=tick).arms
            live.record({name: int(rng.random() < 0.1) for name in arms if rng.random() < 0.8})
        rang = [[one.seq, one.name, one.tick] for one in live.alarms()]
        assert rang
        found = told(live) | {"rang": rang}
        live.close()
    return found


# ---------------------------------------------------------------- theory and comparisons


@case("theory")
def theory():
    found = {"episodes": rs.theory.episode_bound(8, 2, 1000, 3)}
    found["printed"] = rs.theory.episode_bound(8, 2, 1000, 3, as_printed=True)
    found["regret"] = rs.theory.regret_bound(8, 2, 1000, 3, 1.5)
    for name, make in PRIORS.items():
        prior, num_pulls = make()
        found[f"bounds {name}"] = tried(rs.theory.bounds_for, prior, num_pulls, 500, 1.25)
    for name, make in {"small": small_prior, "joint": partial(joint_prior, 3)}.items():
        prior, num_pulls = make()
        apart = rs.theory.decompose_regret(prior, num_pulls, horizon=50, replications=4, seed=1)
        rows = [[row.measured, row.stderr, row.bound, row.ratio] for row in apart.comparisons]
        found[f"apart {name}"] = [apart, rows]
    bandit = controlled_bandit()
    found["spans"] = rs.theory.discounted_spans(bandit, rs.whittle(bandit), [0.5, 0.9, 0.99])
    return found


@case("compare")
def comparison():
    problems = [channel_bandit(), (truth_of(*small_prior()), small_prior()[0])]
    prior, num_pulls = beta([0.0, 0.4])
    problems.append((truth_of(prior, num_pulls), prior))
    learners = ["tsde", "ucb1", {"name": "epsilon_greedy", "epsilon": 0.2}]
    found = rs.compare(problems, learners, "whittle", 200, replications=6, seed=4, times=5)
    return {
        str(i): {
            "curves": [curve_of(curve) for curve in one.curves],
            "differences": [[row.mean, row.half_width] for row in one.differences],
        }
        for i, one in enumerate(found)
    }


@case("regret")
def regret_curves():
    bandit = channel_bandit()
    grid, continuous = rs.grid_prior([0.2, 0.4, 0.6, 0.8], 4), rs.beta_prior(like=bandit)
    run = partial(rs.frequentist_regret, replications=5, seed=3, times=6)
    return {
        "exact": curve_of(run(bandit, grid, "whittle", 300)),
        "coupled": curve_of(run(bandit, grid, "myopic", 300, baseline="coupled")),
        "realised": curve_of(run(bandit, grid, "best_fixed", 300, rewards="realised")),
        "doubling": curve_of(run(bandit, grid, "whittle", 300, doubling=True)),
        "continuous": curve_of(run(bandit, continuous, "whittle", 300)),
        "threads": curve_of(run(bandit, grid, "whittle", 100, threads=2)),
    }


# ---------------------------------------------------------------- posteriors


def evidence_of(size, seed, count=60, youngest=1):
    rng = np.random.default_rng(seed)
    found = rs.Evidence(size)
    states = rng.integers(size, size=(2, count))
    ages, counts = rng.integers(youngest, 9, size=count), rng.integers(1, 4, size=count)
    found.add(states[0], ages, states[1], counts)
    return found


@cases(("beta", "dirichlet", "dirichlet_paying"), "posterior")
def posterior_under(name):
    prior, _ = PRIORS[name]()
    found = {}
    for k, law in enumerate(prior.arms[:2]):
        youngest = 1 if name == "beta" else 2  # zeros rule out some of what is seen after a step
        for seed, count in ((1, 10), (2, 60), (3, 600)):
            seen = evidence_of(law.num_states, seed, count, youngest)
            informed = law.given(seen)
            found[f"{k} {count}"] = {
                "particles": posterior_of(informed.particles()),
                "mixing_time": informed.mixing_time(),
                "draws": [informed.draw(np.uint64(key)) for key in (1, 99, 2**63 + 5)],
                "data": informed.to_data(),
                "twice": posterior_of(informed.given(seen).particles()),
            }
        found[f"{k} nothing"] = {
            "particles": posterior_of(law.particles()),
            "mixing_time": [law.mixing_time(), law.mixing_time(0.5)],
            "draws": [law.draw(np.uint64(key)) for key in (1, 99, 2**63 + 5)],
        }
    return found


@case("posterior", "finite")
def finite_posteriors():
    found = {}
    for name in ("channels", "pooled", "paying"):
        prior, _ = PRIORS[name]()
        seen = [evidence_of(law.typical.num_states, k) for k, law in enumerate(prior.arms)]
        found[name] = [law.weights for law in prior.given(seen).arms]
        found[f"{name} counts"] = [one.to_data() for one in seen]
    prior, _ = joint_prior()
    found["joint"] = prior.given([evidence_of(2, k) for k in range(3)]).weights
    return found


# ---------------------------------------------------------------- the file


def differences(found, stored):
    """Return, as sentences, in which parts a case differs from what is stored of it."""
    said = [f"{part}: is gone" for part in sorted(stored.keys() - found.keys())]
    said += [f"{part}: is new" for part in sorted(found.keys() - stored.keys())]
    for part in sorted(found.keys() & stored.keys()):
        if found[part] != stored[part]:
            now, then = (
                "{} ({} numbers, sum {}, last {})".format(*one)
                for one in (found[part], stored[part])
            )
            said.append(f"{part}: {now}, stored are {then}")
    return said


def as_text(stored):
    """Write the file, a line per part."""
    lines = []
    for name in sorted(stored):
        parts = [f"  {json.dumps(part)}: {json.dumps(one)}" for part, one in stored[name].items()]
        lines.append(f" {json.dumps(name)}: {{\n" + ",\n".join(parts) + "\n }")
    return "{\n" + ",\n".join(lines) + "\n}\n"


if __name__ == "__main__":
    STORED.write_text(as_text({name: golden(name) for name in CASES}), encoding="utf-8")
