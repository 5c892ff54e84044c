"""Live agents for tests: priors of every sort, a world that answers, and files compared."""

from collections.abc import Callable
from datetime import UTC, datetime, timedelta

import numpy as np

import restive as rs
from restive.live.memory import Memory

__all__ = ["PRIORS", "Ticking", "created", "fingerprint", "reply", "run"]

LEVELS = [0.1, 0.5, 0.9]


def controlled_prior(num_arms: int) -> rs.IndependentPrior:
    """Arms that move differently when pulled."""
    candidates = [
        rs.Arm([[1 - a, a], [0.3, 0.7]], [[0.8, 0.2], [1 - b, b]], [0, 1])
        for a in (0.3, 0.6)
        for b in (0.4, 0.8)
    ]
    return rs.IndependentPrior([rs.ArmPrior(candidates)] * num_arms)


def joint_prior(num_arms: int) -> rs.JointPrior:
    bandits = [
        rs.RestlessBandit([rs.gilbert_elliott(a, b)] * num_arms, 2)
        for a in (0.2, 0.6)
        for b in (0.5, 0.9)
    ]
    return rs.JointPrior(bandits)


def continuous_prior(num_arms: int) -> rs.IndependentPrior:
    """Channels whose probabilities may be any number."""
    return rs.beta_prior(num_arms, (2, 1), (3, 2), particles=32)


def controlled_continuous_prior(num_arms: int) -> rs.IndependentPrior:
    """Arms of any matrices, which move differently when pulled."""
    arm = rs.DirichletArmPrior([[1, 2], [1, 1]], [[2, 1], [1, 3]], [0, 1], particles=32)
    return rs.IndependentPrior([arm] * num_arms)


def mixed_prior(num_arms: int) -> rs.IndependentPrior:
    """Arms of all the kinds above, in turn."""
    made = (
        rs.grid_prior(LEVELS, 1), continuous_prior(1), controlled_prior(1),
        controlled_continuous_prior(1),
    )  # fmt: skip
    return rs.IndependentPrior([made[k % len(made)].arms[0] for k in range(num_arms)])


def pooled_prior(num_arms: int) -> rs.IndependentPrior:
    """Arms of two kinds in turn, those of each but the last two known to be identical."""
    made = (rs.grid_prior(LEVELS, 1), continuous_prior(1))
    pools = [list(range(first, num_arms - 2, 2)) for first in range(2)]
    return rs.IndependentPrior([made[k % 2].arms[0] for k in range(num_arms)], pools)


PRIORS: dict[str, Callable[[int], object]] = {
    "equal": lambda num_arms: rs.grid_prior(LEVELS, num_arms),
    "controlled": controlled_prior,
    "joint": joint_prior,
    "continuous": continuous_prior,
    "controlled continuous": controlled_continuous_prior,
    "mixed": mixed_prior,
    "pooled": pooled_prior,
}
PULLING_MOVES = ("controlled", "controlled continuous", "mixed")  # which must say what unseen means


class Ticking:
    """A clock that tests move."""

    def __init__(self, start: str = "2026-11-16") -> None:
        self.now = datetime.fromisoformat(start).replace(tzinfo=UTC)

    def __call__(self) -> datetime:
        return self.now

    def move(self, **length: float) -> None:
        self.now += timedelta(**length)


def created(path, kind="equal", num_arms=6, num_pulls=2, **options) -> rs.LiveAgent:
    missing = "as-not-pulled" if kind in PULLING_MOVES else None
    given = {"missing": missing, "seed": 3, "durability": "process", **options}
    return rs.LiveAgent.create(path, PRIORS[kind](num_arms), num_pulls, **given)


def reply(tick: int, name: str) -> int:
    """What is seen of an arm at a tick, whoever asks."""
    return int(np.random.default_rng([tick, *name.encode()]).random() < 0.55)


def run(live: rs.LiveAgent, ticks: int) -> list[tuple[str, ...]]:
    """Play ticks of a file whose clock counts calls; return what was decided."""
    decided = []
    for _ in range(ticks):
        decision = live.decide()
        decided.append(decision.arms)
        live.record({name: reply(decision.tick, name) for name in decision.arms})
    return decided


def memory_of(live: rs.LiveAgent) -> Memory:
    with live._session.reading() as memory:
        return memory


def fingerprint(live: rs.LiveAgent) -> object:
    """Everything that follows from a journal, to the bit, but for when it happened."""
    data = memory_of(live).to_data()
    del data["seq"], data["digest"]
    return data
