"""TSDE and its relatives: the same posterior, other episodes.

Each is its rules, in which it differs from TSDE; the kernels are the same.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import ceil, sqrt
from typing import ClassVar

from restive.arguments import checked_count
from restive.errors import ProblemError
from restive.learn.learners.base import Rules, check_memory, checked_number
from restive.learn.task import Facts

__all__ = [
    "CertaintyEquivalence",
    "DoublingOnly",
    "DynamicEpisodes",
    "EpisodicThompson",
    "EpsilonGreedy",
    "EveryStep",
    "LengthOnly",
    "MeanIndex",
]

MOST_DRAWS = 10_000
EPOCHS = "epochs"


@dataclass(frozen=True)
class DynamicEpisodes:
    """Thompson sampling with dynamic episodes (Jung, Abeille and Tewari 2019, Algorithm 1).

    With more than one draw it is not the paper's algorithm, and its bound is not known to hold:
    each episode draws several systems and pulls the arms whose indices are the largest on average.
    That chases single draws less, which pays where arms are seen few times, and explores less,
    which costs where the future is long.

    Parameters
    ----------
    draws
        Systems drawn in an episode; 1 is the paper's.
    learn_kinds
        "epochs" to estimate the law of each kind anew, now and then, from all its arms.
    forget_after
        Steps after which what was seen weighs 1/e of what it did; None to forget nothing, as the
        paper's learner. Episodes are then no longer than sqrt(forget_after) / 2 steps.
    """

    draws: int = 1
    learn_kinds: str | None = None
    forget_after: float | None = None

    name: ClassVar[str] = "tsde"
    title: ClassVar[str] = "TSDE"

    def __post_init__(self) -> None:
        checked_count(self.draws, "tsde: draws", most=MOST_DRAWS)
        _require_epochs(self.learn_kinds, self.name)
        check_memory(self)

    def rules(self, facts: Facts) -> Rules:
        """Both rules end episodes."""
        learn_kinds = self.learn_kinds is not None
        return Rules(draws=self.draws, learn_kinds=learn_kinds, forget_after=self.forget_after)


@dataclass(frozen=True)
class MeanIndex:
    """Pulls the arms whose index is the largest on average over the posterior, in every step.

    This is what TSDE comes to with very many draws, made anew in every step. It never explores on
    purpose. Where each arm is seen a few times at most, knowing better would come too late, and
    this earns the most; over a long future it may never find out what it has wrong. The paper's
    theory says nothing of it. Of arms that are always seen, under a Dirichlet prior, the mean is
    that of 32 draws.

    Parameters
    ----------
    learn_kinds
        As of `tsde`.
    forget_after
        As of `tsde`.
    """

    learn_kinds: str | None = None
    forget_after: float | None = None

    name: ClassVar[str] = "mean_index"
    title: ClassVar[str] = "mean index"

    def __post_init__(self) -> None:
        _require_epochs(self.learn_kinds, self.name)
        check_memory(self)

    def rules(self, facts: Facts) -> Rules:
        """Take the mean anew in every step."""
        learn_kinds = self.learn_kinds is not None
        return Rules(
            length=1, doubling_rule=False, draws=0, learn_kinds=learn_kinds,
            forget_after=self.forget_after,
        )  # fmt: skip


def _require_epochs(value: object, name: str) -> None:
    if value not in (None, EPOCHS):
        raise ProblemError(f"{name}: learn_kinds must be {EPOCHS!r} or None, got {value!r:.60}")


@dataclass(frozen=True)
class DoublingOnly:
    """TSDE whose episodes end only when a counter has more than doubled (its second rule).

    Parameters
    ----------
    forget_after
        As of `tsde`.
    """

    forget_after: float | None = None

    name: ClassVar[str] = "tsde_doubling_only"
    title: ClassVar[str] = "TSDE, doubling rule only"

    def __post_init__(self) -> None:
        check_memory(self)

    def rules(self, facts: Facts) -> Rules:
        """Episodes have no longest length."""
        return Rules(length_rule=False, forget_after=self.forget_after)


@dataclass(frozen=True)
class LengthOnly:
    """TSDE whose episodes are each a step longer than the last (its first rule).

    Parameters
    ----------
    forget_after
        As of `tsde`.
    """

    forget_after: float | None = None

    name: ClassVar[str] = "tsde_length_only"
    title: ClassVar[str] = "TSDE, length rule only"

    def __post_init__(self) -> None:
        check_memory(self)

    def rules(self, facts: Facts) -> Rules:
        """Counters do not end episodes."""
        return Rules(doubling_rule=False, forget_after=self.forget_after)


@dataclass(frozen=True)
class EveryStep:
    """Thompson sampling that draws a new system in every step (Thompson 1933).

    Parameters
    ----------
    forget_after
        As of `tsde`.
    """

    forget_after: float | None = None

    name: ClassVar[str] = "thompson_every_step"
    title: ClassVar[str] = "Thompson, every step"

    def __post_init__(self) -> None:
        check_memory(self)

    def rules(self, facts: Facts) -> Rules:
        """Episodes of one step."""
        return Rules(length=1, doubling_rule=False, forget_after=self.forget_after)


@dataclass(frozen=True)
class EpisodicThompson:
    """Thompson sampling with episodes of one length (Jung and Tewari 2019), without resets.

    Their episodes are part of the problem: each begins in the same state anew. Here nothing is ever
    reset; only the draw is renewed. Their analysis leaves the length to the problem; by default it
    is sqrt(T), rounded up, so that there are as many episodes as they have steps (50 where the
    horizon is not known; the epochs of the doubling trick then cut episodes short).

    Parameters
    ----------
    length
        Steps of an episode.
    forget_after
        As of `tsde`.
    """

    length: int | None = None
    forget_after: float | None = None

    name: ClassVar[str] = "episodic_thompson"
    title: ClassVar[str] = "episodic Thompson"

    def __post_init__(self) -> None:
        if self.length is not None:
            checked_count(self.length, "episodic_thompson: length")
        check_memory(self)

    def rules(self, facts: Facts) -> Rules:
        """Episodes of a fixed length."""
        default = 50 if facts.horizon is None else ceil(sqrt(facts.horizon))
        length = self.length or default
        return Rules(length=length, doubling_rule=False, forget_after=self.forget_after)


@dataclass(frozen=True)
class CertaintyEquivalence:
    """Plays the policy of the posterior's mode, in every step (Mandl 1974, Kumar 1985).

    Of equally likely candidates it takes the first, so before anything is seen under a uniform
    prior it takes each arm's first candidate. It never explores on purpose.

    Parameters
    ----------
    forget_after
        As of `tsde`.
    """

    forget_after: float | None = None

    name: ClassVar[str] = "certainty_equivalence"
    title: ClassVar[str] = "certainty equivalence"

    def __post_init__(self) -> None:
        check_memory(self)

    def rules(self, facts: Facts) -> Rules:
        """Take the mode anew in every step."""
        return Rules(
            length=1, doubling_rule=False, most_likely=True, forget_after=self.forget_after
        )


@dataclass(frozen=True)
class EpsilonGreedy:
    """Certainty equivalence that pulls arms at random in a share of the steps (Watkins 1989).

    In such a step all N arms are random, each set of N equally likely.

    Parameters
    ----------
    epsilon
        The share of random steps.
    forget_after
        As of `tsde`.
    """

    epsilon: float = 0.05
    forget_after: float | None = None

    name: ClassVar[str] = "epsilon_greedy"
    title: ClassVar[str] = "epsilon-greedy"

    def __post_init__(self) -> None:
        checked_number(self.epsilon, "epsilon_greedy: epsilon", 0, 1)
        check_memory(self)

    def rules(self, facts: Facts) -> Rules:
        """Take the mode anew in every step, but for some."""
        return Rules(
            length=1, doubling_rule=False, most_likely=True, exploring=self.epsilon,
            forget_after=self.forget_after,
        )  # fmt: skip
