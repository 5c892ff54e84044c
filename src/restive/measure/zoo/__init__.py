"""The zoo: named instances to plan, learn and compare on.

An `Instance` is a problem with what a learner may know of it beforehand. The fixed ones are the
paper's two settings, four satellite channels, Qian's pair, three corner cases, those of
`always_seen`, arms that are seen in every step and machines that stay broken, and those of
`changing`, whose arms change while a learner runs;
the random ones come from generators, which are public and make as many more as are wanted. Those of
`outreach` pay in every step, pulled or not; all others pay when pulled.

All numbers come from numpy's `default_rng(seed)` (PCG64), as uniform and as whole numbers only, and
only sums and products are made of them: a seed gives the same instance on every machine. For any
seed every chain that is drawn is irreducible and aperiodic (Assumption 1), mixed with a little of
the uniform law where its family does not see to it, and its tables of beliefs have a few hundred
ages at most.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from functools import cache, partial
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from restive.arguments import checked_count, checked_seed, suggestion
from restive.errors import ProblemError
from restive.learn.priors.finite import ArmPrior
from restive.learn.priors.independent import IndependentPrior, beta_prior, grid_prior
from restive.measure.zoo.always_seen import calls, circulant, machines, restart
from restive.measure.zoo.changing import (
    calls_switch,
    channels,
    channels_drift,
    channels_switch,
)
from restive.measure.zoo.instance import Instance, drawn_instance, spread
from restive.measure.zoo.outreach import cohort, collapsing, qian_pair, two_types
from restive.problem.arm import Arm, gilbert_elliott
from restive.problem.bandit import RestlessBandit, checked_num_pulls

__all__ = [
    "Instance",
    "cohort",
    "collapsing",
    "load",
    "names",
    "qian_pair",
    "random_controlled",
    "random_dirichlet",
    "random_near_deterministic",
    "random_sticky",
    "two_types",
]

FloatArray = NDArray[np.float64]
Family: TypeAlias = Callable[[np.random.Generator, int], FloatArray]  # (rng, S) -> matrix [S, S]

PAPER = "Jung, Abeille and Tewari 2019 (arXiv:1910.05654), Section 6"
PAPER_LEVELS = (0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9)

# Bad to good and good to good as (p01, p11), with the rewards of bad and good.
SATELLITES: dict[str, tuple[tuple[tuple[float, float], tuple[float, float]], ...]] = {
    "Heavy_Tree-Shadowed_S-band": (
        ((0.0221, 0.9293), (0.8748, 1.0)),
        ((0.0586, 0.8585), (0.9376, 0.9957)),
    ),
    "Suburban_L-band": (
        ((0.108, 0.9549), (0.2933, 0.4373)),
        ((0.0669, 0.8969), (0.3187, 0.4139)),
        ((0.0719, 0.8182), (0.4, 0.5159)),
    ),
    "Urban_L-band": (
        ((0.0282, 0.9304), (0.3626, 0.8495)),
        ((0.0287, 0.933), (0.355, 1.0)),
        ((0.0831, 0.9244), (0.4201, 0.8944)),
        ((0.1508, 0.8469), (0.6538, 0.8545)),
    ),
    "Urban_S-band": (
        ((0.0811, 0.9155), (0.325, 1.0)),
        ((0.2667, 0.9268), (0.64, 0.978)),
    ),
}

# Just seen in state 0, this arm should be pulled at low subsidies and again at much higher ones.
NON_INDEXABLE = Arm(
    active=[[0.05, 0.85, 0.1], [0.9, 0.05, 0.05], [0.05, 0.2, 0.75]],
    passive=[[0.2, 0.65, 0.15], [0.3, 0.15, 0.55], [0.8, 0.15, 0.05]],
    rewards=[0, 0.8, 0.9],
)

SPREAD = 0.05  # of the uniform law: beliefs come closer by a factor of 1 - SPREAD a step or better
STICKY = (0.8, 0.99)  # least and largest probability to stay, before spreading
MOST_NOISE = 0.06  # of a step that is nearly deterministic, before spreading


def __dir__() -> list[str]:  # what users call, and not what this module imports
    return list(__all__)


def names() -> tuple[str, ...]:
    """Return the names of all instances."""
    return tuple(_ZOO)


def load(name: str) -> Instance:
    """Return the instance with this name; hyphens are as good as underscores."""
    if not isinstance(name, str):
        raise ProblemError(f"an instance's name must be text, got {name!r:.60}")
    known = name.replace("_", "-")
    if known not in _ZOO:
        raise ProblemError(f"unknown instance {name!r:.60}; {suggestion(known, _ZOO)}")
    return _made(known)


@cache  # nothing in it can be changed
def _made(name: str) -> Instance:
    return replace(_ZOO[name](), name=name)  # a generator's instance has its family's name


def random_dirichlet(
    num_arms: int = 6, num_pulls: int = 2, *, seed: int = 0, num_states: int = 2
) -> Instance:
    """Arms whose rows are uniform on the simplex (Dirichlet with ones), the same pulled or not.

    Each generator draws 32 chains an arm from its family, of which one, at a place that is drawn
    too, is the truth; the prior is uniform on them. Rewards are known and the same for all arms:
    evenly spaced from 0 in the first state to 1 in the last. So arms differ only in what has to be
    learned.

    Parameters
    ----------
    num_arms, num_pulls
        Numbers K of arms and N of pulls.
    seed
        Of the draws, from 0 to 2^64 - 1.
    num_states
        Number S of states, at least 2.
    """
    sizes = (num_arms, num_pulls, seed, num_states)
    return _drawn("random-dirichlet", "rows uniform on the simplex", _simplex_rows, *sizes)


def random_sticky(
    num_arms: int = 6, num_pulls: int = 2, *, seed: int = 0, num_states: int = 2
) -> Instance:
    """Arms that stay where they are with probability about 0.8 to 0.97; see `random_dirichlet`."""
    sizes = (num_arms, num_pulls, seed, num_states)
    return _drawn("random-sticky", "they rarely move", _sticky_rows, *sizes)


def random_near_deterministic(
    num_arms: int = 6, num_pulls: int = 2, *, seed: int = 0, num_states: int = 3
) -> Instance:
    """Arms with a successor per state, taken in about 9 steps of 10; see `random_dirichlet`."""
    sizes = (num_arms, num_pulls, seed, num_states)
    title = "they nearly always go the same way"
    return _drawn("random-near-deterministic", title, _near_deterministic_rows, *sizes)


def random_controlled(
    num_arms: int = 6, num_pulls: int = 2, *, seed: int = 0, num_states: int = 2
) -> Instance:
    """Arms that move by another matrix when pulled; both are drawn as in `random_dirichlet`."""
    sizes = (num_arms, num_pulls, seed, num_states)
    title = "pulling changes how they move"
    return _drawn("random-controlled", title, _simplex_rows, *sizes, controlled=True)


def _drawn(
    name: str,
    title: str,
    family: Family,
    num_arms: int,
    num_pulls: int,
    seed: int,
    num_states: int,
    controlled: bool = False,
) -> Instance:
    num_arms = checked_count(num_arms, "num_arms", most=10**5)
    num_pulls = checked_num_pulls(num_pulls, num_arms)
    num_states = checked_count(num_states, "num_states", least=2, most=100)
    rng = np.random.default_rng(checked_seed(seed))
    rewards = np.arange(num_states) / (num_states - 1)

    def chain() -> FloatArray:
        return spread(family(rng, num_states), SPREAD)

    def arm() -> Arm:
        return Arm(chain(), chain() if controlled else None, rewards)

    sizes = f"{num_arms} arms of {num_states} states, {num_pulls} pulls"
    source = f"drawn by this package (zoo.{name.replace('-', '_')}) with seed {seed}"
    return drawn_instance(name, f"{sizes}: {title}", source, rng, arm, num_arms, num_pulls, 10_000)


def _simplex_rows(rng: np.random.Generator, num_states: int) -> FloatArray:
    return _gaps(rng, num_states, num_states)


def _sticky_rows(rng: np.random.Generator, num_states: int) -> FloatArray:
    """Stay with a uniform probability; where to go otherwise is uniform on the simplex."""
    least, largest = STICKY
    stay = least + (largest - least) * rng.random(num_states)
    rows = np.diag(stay)
    leave = (1 - stay)[:, None] * _gaps(rng, num_states, num_states - 1)
    rows[~np.eye(num_states, dtype=bool)] = leave.ravel()
    return rows


def _near_deterministic_rows(rng: np.random.Generator, num_states: int) -> FloatArray:
    """Go to one state that is drawn, but for a little noise."""
    successor = np.eye(num_states)[rng.integers(num_states, size=num_states)]
    noise = MOST_NOISE * rng.random((num_states, 1))
    rows: FloatArray = (1 - noise) * successor + noise * _gaps(rng, num_states, num_states)
    return rows


def _gaps(rng: np.random.Generator, rows: int, columns: int) -> FloatArray:
    """Rows uniform on the simplex: the gaps that sorted uniform numbers leave in [0, 1]."""
    cuts = np.sort(rng.random((rows, columns - 1)), axis=1)
    gaps: FloatArray = np.diff(cuts, axis=1, prepend=0.0, append=1.0)
    return gaps


def _channels(
    parameters: Iterable[tuple[float, float]],
    num_pulls: int,
    title: str,
    source: str,
    levels: Sequence[float] = PAPER_LEVELS,
) -> Instance:
    """Channels (p01, p11) with rewards 0 and 1, whose parameters are among the prior's levels."""
    bandit = RestlessBandit([gilbert_elliott(p01, p11) for p01, p11 in parameters], num_pulls)
    prior = grid_prior(levels, bandit.num_arms)
    return Instance("", title, source, num_pulls, prior, bandit, 10_000, truth_in_prior=True)


def _paper_bayesian() -> Instance:
    return Instance(
        name="",
        title="8 channels, 3 pulls, drawn from the grid {0.1, ..., 0.9}^2 each time",
        source=f"{PAPER}, Bayesian regret",
        num_pulls=3,
        prior=grid_prior(PAPER_LEVELS, 8),
        bandit=None,
        horizon=2000,
        truth_in_prior=True,
    )


def _satellite(file: str) -> Instance:
    arms = [gilbert_elliott(*moves, rewards=rewards) for moves, rewards in SATELLITES[file]]
    bandit = RestlessBandit(arms, 1)
    return Instance(
        name="",
        title=f"{len(arms)} land mobile satellite channels, 1 pull: {file.replace('_', ' ')}",
        source="Wang, Huang and Lui 2020 (Restless-UCB, arXiv:2011.02664), their file " + file,
        num_pulls=1,
        prior=beta_prior(like=bandit),
        bandit=bandit,
        horizon=50_000,
        truth_in_prior=True,
    )


def _non_indexable() -> Instance:
    arm = NON_INDEXABLE
    shared = ArmPrior(
        [
            Arm(spread(arm.active, tenths / 10), spread(arm.passive, tenths / 10), arm.rewards)
            for tenths in range(8)  # the first is the truth, to the bit
        ]
    )
    return Instance(
        name="",
        title="3 arms of 3 states, 2 pulls: not indexable, and Whittle earns less than myopic",
        source="found by this package among random arms with steps of 0.05",
        num_pulls=2,
        prior=IndependentPrior([shared] * 3),
        bandit=RestlessBandit([arm] * 3, 2),
        horizon=10_000,
        truth_in_prior=True,
    )


_ZOO: dict[str, Callable[[], Instance]] = {
    "paper-bayesian": _paper_bayesian,
    "paper-frequentist": partial(
        _channels,
        [(0.3, 0.7), (0.4, 0.6), (0.5, 0.5), (0.6, 0.4)],
        num_pulls=2,
        title="4 channels, 2 pulls, each good half of the time",
        source=f"{PAPER}, frequentist regret",
    ),
    "satellite-heavy-tree-shadow-s": partial(_satellite, "Heavy_Tree-Shadowed_S-band"),
    "satellite-suburban-l": partial(_satellite, "Suburban_L-band"),
    "satellite-urban-l": partial(_satellite, "Urban_L-band"),
    "satellite-urban-s": partial(_satellite, "Urban_S-band"),
    "random-dirichlet": random_dirichlet,
    "random-sticky": random_sticky,
    "random-near-deterministic": random_near_deterministic,
    "random-controlled": random_controlled,
    "random-three-state": partial(random_dirichlet, num_states=3),
    "random-five-state": partial(random_dirichlet, num_states=5),
    "non-indexable": _non_indexable,
    "multichain-myopic": partial(
        _channels,
        [(0.6, 0.6), (0.5, 0.9), (0.9, 0.2), (0.6, 0.6)],
        num_pulls=2,
        title="4 channels, 2 pulls: the myopic policy's J depends on the start",
        source="found by this package among draws from the paper's prior",
    ),
    "large": partial(
        _channels,
        # interleaved, since ties go to the lowest arm
        [(0.1, 0.9), (0.1, 0.7), (0.3, 0.7), (0.5, 0.5), (0.7, 0.3)] * 200,
        num_pulls=50,
        title="1,000 channels of 5 kinds, 50 pulls",
        source="made up for this package",
        levels=(0.1, 0.3, 0.5, 0.7, 0.9),
    ),
    "collapsing": collapsing,
    "collapsing-two-types": two_types,
    "qian-pair": qian_pair,
    "outreach-cohort": cohort,
    "circulant": circulant,
    "restart": restart,
    "machines": machines,
    "calls-8": calls,
    "calls-8-switch": calls_switch,
    "channels-16": channels,
    "channels-16-switch": channels_switch,
    "channels-16-drift": channels_drift,
}
