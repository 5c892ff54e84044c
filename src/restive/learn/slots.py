"""The arms that may be drawn, as tables for kernels.

A finite prior fills its slots once: a slot for each candidate, with its likelihoods b(s, n)[s'] of
everything that can be seen. The slots of a continuous prior hold particles (`particle_groups`),
whose likelihoods are computed when something is seen. Independent and joint priors are the same to
the kernels: groups of arms that share one draw, a group per arm or one group of all arms.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, lru_cache
from itertools import product
from math import ceil, frexp, log2, prod

import numpy as np
from numpy.typing import NDArray

from restive.errors import ProblemError, RestiveError, TooLargeError
from restive.kernels.jit.vectors import LANES
from restive.kernels.loop.tables import (
    BLOCK,
    LEAST_LIKELIHOOD,
    LIFTED,
    MOST_LOSS,
    BeliefTables,
    Slots,
)
from restive.learn.priors.continuous import DirichletArmPrior
from restive.learn.priors.finite import ArmPrior, JointPrior, rewards_of
from restive.learn.priors.independent import Prior
from restive.problem.arm import Arm
from restive.problem.bandit import Kinds, RestlessBandit, first_places, kinds_among, starts_of
from restive.problem.beliefs import MODES, belief_tables, settled_lengths
from restive.problem.chains import mixing_time

__all__ = [
    "MOST_STEPS",
    "Choices",
    "aligned_zeros",
    "home_of_weights",
    "home_size",
    "kept_ages",
    "lane_places",
    "num_rows",
    "posterior_weights",
]

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]

MOST_LIKELIHOOD_BYTES = 4 << 30
MOST_KEPT_AGES = 32
MOST_KEPT = 1 << 16  # likelihoods of one arm's particles
AGES_AT_ONCE = 1024
MOST_STEPS = 1 << 62


@dataclass(frozen=True, eq=False)
class Choices:
    """What each arm may be, and what it is where that is known; tables are made when needed.

    A pool is a distinct prior: arms that share an `ArmPrior` share its pool.
    """

    kinds: Kinds  # of all candidates, then of the true arms where there are some
    true_kinds: IntArray  # [K] of the true bandit, empty without one
    groups: IntArray  # [K] group of each arm
    pool_of_group: IntArray  # [groups]
    weights: tuple[FloatArray, ...]  # [pools] prior weights of its candidates
    pool_of_arm: IntArray  # [K] pool of candidate lists: under a joint prior each arm has its own
    candidate_kinds: tuple[IntArray, ...]  # by pool of candidate lists; none if continuous
    pool_sizes: tuple[int, ...]  # numbers of states, by pool of candidate lists
    continuous: tuple[DirichletArmPrior | None, ...]  # by pool: its prior, None for candidates
    max_elapsed: int | None
    ages: int | None = None  # that have likelihoods, with the settled ones; None for all
    drawn_kinds: IntArray = field(default_factory=lambda: np.zeros(0, dtype=np.int64))

    @classmethod
    def of(
        cls,
        prior: Prior,
        true_bandit: RestlessBandit | None,
        max_elapsed: int | None,
        ages: int | None = None,
    ) -> Choices:
        """Tell the kinds of arms in a prior and in the true bandit, where one is given."""
        lists, pool_of_arm, groups, weights, pool_of_group = _layout(prior)
        first_arms = _first_arms(pool_of_arm)
        continuous = tuple(_continuous(prior, k) for k in first_arms)
        # a list that stands for several pools, as posteriors of one kind have, is looked at once
        of_list, firsts = _first_places([id(candidates) for candidates in lists])
        labels = [
            f"arm {first_arms[at]}, candidate {j}" for at in firsts for j in range(len(lists[at]))
        ]
        arms: list[Arm] = [arm for at in firsts for arm in lists[at]]
        num_candidates = len(arms)
        if true_bandit is not None:
            _require_fits(true_bandit, prior)
            arms += true_bandit.arms

        def label(at: int) -> str:
            if true_bandit is None or at < num_candidates:
                return labels[at]
            return f"true {true_bandit.label(at - num_candidates)}"

        kinds = kinds_among(arms, label)
        numbers = kinds.of.astype(np.int64)
        ends = np.cumsum([len(lists[at]) for at in firsts])
        kinds_of_list = np.split(numbers[:num_candidates], ends[:-1])
        return cls(
            kinds=kinds,
            true_kinds=numbers[num_candidates:],
            groups=groups,
            pool_of_group=pool_of_group,
            weights=weights,
            pool_of_arm=pool_of_arm,
            candidate_kinds=tuple(kinds_of_list[at] for at in of_list),
            pool_sizes=tuple(prior.typical(k).num_states for k in first_arms),
            continuous=continuous,
            max_elapsed=max_elapsed,
            ages=ages,
        )

    @cached_property
    def has_particles(self) -> bool:
        """Whether any arm has a continuous prior."""
        return any(prior is not None for prior in self.continuous)

    def with_truths(self, truths: Sequence[Arm]) -> tuple[Choices, IntArray]:
        """Add arms that are true in some replication, and return the kind of each."""
        labels = [*self.kinds.labels, *(f"drawn arm {i}" for i in range(len(truths)))]
        kinds = kinds_among([*self.kinds.arms, *truths], labels.__getitem__)
        old, drawn = np.split(kinds.of.astype(np.int64), [len(self.kinds.arms)])
        candidates = tuple(old[numbers] for numbers in self.candidate_kinds)
        choices = replace(self, kinds=kinds, candidate_kinds=candidates, drawn_kinds=drawn)
        return choices, drawn

    @cached_property
    def in_support(self) -> NDArray[np.bool_]:
        """Whether [kinds] the prior gives a kind any weight."""
        found = np.zeros(len(self.kinds.arms), dtype=bool)
        shared = len(self.weights) == 1  # under a joint prior all lists have the systems' weights
        for pool, kinds in enumerate(self.candidate_kinds):
            if self.continuous[pool] is None:
                found[kinds[self.weights[0 if shared else pool] > 0]] = True
        return found

    @cached_property
    def used(self) -> NDArray[np.bool_]:
        """Whether [kinds] a kind is in the support or in the true bandit."""
        found = self.in_support.copy()
        found[self.true_kinds] = True
        found[self.drawn_kinds] = True
        return found

    @cached_property
    def tables(self) -> BeliefTables:
        """Belief tables by kind; candidates of weight zero, which nobody looks at, have one age."""
        kinds = self.kinds
        lengths = np.ones(len(kinds.arms), dtype=np.int64)
        places = np.flatnonzero(self.used).tolist()
        arms = tuple(kinds.arms[j] for j in places)
        labels = tuple(kinds.labels[j] for j in places)
        slow_ones = len(self.drawn_kinds) > 0  # a continuous prior draws some, very rarely
        lengths[places] = settled_lengths(
            Kinds(arms, labels, np.arange(len(arms))), self.max_elapsed, hold_slow=slow_ones
        )
        return belief_tables(kinds.arms, lengths)

    def mixing_time(self) -> int:
        """T^mix(1/4) of Assumption 1: the largest over arms and systems that the prior allows.

        Of an arm with a continuous prior, where there is none, its 95% quantile.
        """
        slowest = 1
        for prior in self.continuous:
            if prior is not None:
                slowest = max(slowest, prior.mixing_time())
        for kind in np.flatnonzero(self.in_support).tolist():
            if self.kinds.arms[kind].always_seen:
                slowest = max(slowest, MODES)  # what its counters tell apart
                continue
            try:
                slowest = max(slowest, mixing_time(self.kinds.arms[kind]))
            except RestiveError as error:
                reason = str(error).split(": ", 1)[-1]
                raise type(error)(
                    f"{self.kinds.labels[kind]}: {reason}; pass mixing_time"
                ) from None
        return slowest

    @property
    def all_conjugate(self) -> bool:
        """Whether all arms are always seen and have Dirichlet priors."""
        return all(prior is not None and prior.always_seen for prior in self.continuous)

    @property
    def has_conjugates(self) -> bool:
        """Whether some arms are."""
        return any(prior is not None and prior.always_seen for prior in self.continuous)

    @cached_property
    def sizes(self) -> IntArray:
        """The number of states [K] of each arm."""
        return np.array(self.pool_sizes, dtype=np.int64)[self.pool_of_arm]

    @cached_property
    def drawable(self) -> Slots:
        """Slots that can be drawn, without likelihoods: for drawing the truth from the prior."""
        counts = [num_rows(len(weights)) for weights in self.weights]
        slot_kinds = [
            kinds if prior is None else np.zeros(len(_point_weights(prior)), dtype=np.int64)
            for kinds, prior in zip(self.candidate_kinds, self.continuous, strict=True)
        ]
        nothing = np.zeros(0, dtype=np.int64)
        return Slots(
            groups=self.groups,
            row_counts=np.array(counts, dtype=np.int64)[self.pool_of_group],
            kinds=np.concatenate(slot_kinds),
            kind_offsets=starts_of([len(kinds) for kinds in slot_kinds])[self.pool_of_arm],
            likelihoods=np.zeros(0),
            offsets=nothing,
            lengths=nothing,
            sizes=self.sizes,
            losses=nothing,
        )

    @cached_property
    def slots(self) -> Slots:
        """Slots with the likelihoods of what can be seen."""
        blocks, block_of_pool = self._blocks
        self._require_likelihoods_fit()
        shapes = [self._block_shape(kinds) for kinds in blocks]
        starts = starts_of([prod(shape) for shape in shapes])
        likelihoods = aligned_zeros(sum(prod(shape) for shape in shapes))
        for kinds, shape, start in zip(blocks, shapes, starts.tolist(), strict=True):
            if len(kinds):
                self._fill(likelihoods[start : start + prod(shape)].reshape(shape), kinds)
        ages = [
            shapes[block][1] if prior is None else kept_ages(prior)
            for block, prior in zip(block_of_pool, self.continuous, strict=True)
        ]
        losses = np.array([self._loss(kinds) for kinds in blocks], dtype=np.int64)[block_of_pool]
        return self.drawable._replace(
            likelihoods=likelihoods,
            offsets=starts[block_of_pool][self.pool_of_arm],
            lengths=np.array(ages, dtype=np.int64)[self.pool_of_arm],
            losses=losses[self.pool_of_arm],
        )

    @cached_property
    def _blocks(self) -> tuple[list[IntArray], list[int]]:
        """Distinct lists of candidates, and the list of each pool.

        Arms of which different things were seen before differ in their weights alone.
        """
        places: dict[bytes, int] = {}
        found = [places.setdefault(kinds.tobytes(), len(places)) for kinds in self.candidate_kinds]
        return [self.candidate_kinds[found.index(block)] for block in range(len(places))], found

    @cached_property
    def prior_homes(self) -> FloatArray:
        """The homes of the pools, end to end; the sums in them are made by a kernel."""
        return np.concatenate([home_of_weights(weights) for weights in self.weights])

    @cached_property
    def first_homes(self) -> IntArray:
        """Where [groups] the home of each group's pool begins."""
        sizes = [home_size(num_rows(len(weights))) for weights in self.weights]
        return starts_of(sizes)[self.pool_of_group]

    def _require_likelihoods_fit(self) -> None:
        """Raise, before any table is made, where the likelihoods would fill the memory."""
        total = 0
        for kinds in self._blocks[0]:
            total += prod(self._block_shape(kinds)) * 8
        if total > MOST_LIKELIHOOD_BYTES:
            count = sum(len(kinds) for kinds in self._blocks[0])
            raise TooLargeError(
                f"the likelihoods of {count:,} candidates take {total / 2**30:.1f} GiB, more "
                f"than {MOST_LIKELIHOOD_BYTES >> 30}; use fewer candidates or a smaller max_elapsed"
            )

    def _block_shape(self, kinds: IntArray) -> tuple[int, int, int, int]:
        """Shape [S, L, S, width] of the likelihoods of some candidates."""
        if not len(kinds):
            return (1, 1, 1, 0)
        size, length = int(self.tables.sizes[kinds[0]]), int(self.tables.lengths[kinds].max())
        if self.ages is not None:
            length = min(length, self.ages + 1)  # and a column for all that have settled
        return size, length, size, num_rows(len(kinds)) * LANES

    @cached_property
    def _settled(self) -> IntArray:
        """Ages [K] from which on an arm's likelihoods stay the same; 0 for particles."""
        longest = [
            int(self.tables.lengths[kinds].max()) if len(kinds) else 0 for kinds in self._blocks[0]
        ]
        return np.array(longest, dtype=np.int64)[self._blocks[1]][self.pool_of_arm]

    def room_for(
        self, elapsed: IntArray, arms: Sequence[int] | slice = slice(None)
    ) -> tuple[int, int]:
        """Tell which ages have no likelihoods here, and for how long all have.

        Parameters
        ----------
        elapsed
            The age of each of these arms.
        arms
            All by default.

        Returns
        -------
        The largest of these ages that has none, or 0; and the number of steps that may pass.
        """
        if self.ages is None:
            return 0, MOST_STEPS
        growing = elapsed[elapsed < self._settled[arms]]
        oldest = int(growing.max(initial=0))
        return (oldest if oldest > self.ages else 0), self.ages - oldest

    @cached_property
    def _held(self) -> FloatArray:
        """The tables' beliefs as likelihoods: what is possible is not too small."""
        beliefs = self.tables.beliefs
        return np.where(beliefs > 0, np.maximum(beliefs, LEAST_LIKELIHOOD), 0.0)

    def _fill(self, block: FloatArray, kinds: IntArray) -> None:
        """Write b_c(s, n)[s'] of candidate c, in its lane, to [s, n - 1, s', c]; others stay 0."""
        tables, places = self.tables, lane_places(len(kinds))
        size, length = block.shape[:2]
        own, offsets = tables.lengths[kinds], tables.offsets[kinds]
        for first in range(0, length, AGES_AT_ONCE):
            ages = np.arange(first, min(first + AGES_AT_ONCE, length))[:, None]
            ages[ages == length - 1] = own.max() - 1  # the last column is of what has settled
            for s, t in product(range(size), repeat=2):
                at = (
                    offsets + (s * own + np.minimum(ages, own - 1)) * size + t
                )  # [ages, candidates]
                block[s, first : first + AGES_AT_ONCE, t, places] = self._held[at].T

    def _loss(self, kinds: IntArray) -> int:
        """Bits by which an observation can lower a weight it leaves positive, at most MOST_LOSS."""
        least = 1.0
        for kind in np.unique(kinds).tolist():
            begin, size = int(self.tables.offsets[kind]), int(self.tables.sizes[kind]) ** 2
            own = self._held[begin : begin + size * int(self.tables.lengths[kind])]
            least = min(least, float(own[own > 0].min()))
        return min(ceil(-log2(least)), MOST_LOSS)


def _layout(
    prior: Prior,
) -> tuple[list[tuple[Arm, ...]], IntArray, IntArray, tuple[FloatArray, ...], IntArray]:
    """Lists of candidates, list and group of each arm, weights by pool, pool of each group."""
    arms = np.arange(prior.num_arms)
    if isinstance(prior, JointPrior):
        lists = [prior.candidates(int(k)) for k in arms]
        return lists, arms, np.zeros_like(arms), (prior.weights,), np.zeros(1, dtype=np.int64)
    pool_by_identity: dict[int, int] = {}
    distinct: list[ArmPrior | DirichletArmPrior] = []
    pools = np.empty(prior.num_arms, dtype=np.int64)
    for k, arm in enumerate(prior.arms):
        pool = pool_by_identity.setdefault(id(arm), len(distinct))
        if pool == len(distinct):
            distinct.append(arm)
        pools[k] = pool
    weights = tuple(
        arm.weights if isinstance(arm, ArmPrior) else _point_weights(arm) for arm in distinct
    )
    lists = [arm.candidates if isinstance(arm, ArmPrior) else () for arm in distinct]
    first_of_group = np.unique(prior.groups, return_index=True)[1]
    return lists, pools, prior.groups, weights, pools[first_of_group]


def _point_weights(prior: DirichletArmPrior) -> FloatArray:
    """Weights of what stands for a continuous prior: particles, or the one that is drawn anew."""
    return np.ones(1) if prior.always_seen else prior.drawn.weights


def _first_places(keys: Sequence[Hashable]) -> tuple[list[int], list[int]]:
    """Which of the distinct keys each is, in order of first sight, and where these come first."""
    number: dict[Hashable, int] = {}
    which: list[int] = []
    firsts: list[int] = []
    for at, key in enumerate(keys):
        which.append(number.setdefault(key, len(number)))
        if len(number) > len(firsts):
            firsts.append(at)
    return which, firsts


def _continuous(prior: Prior, k: int) -> DirichletArmPrior | None:
    arm = None if isinstance(prior, JointPrior) else prior.arms[k]
    return arm if isinstance(arm, DirichletArmPrior) else None


def _first_arms(pool_of_arm: IntArray) -> list[int]:
    return [int(k) for k in np.unique(pool_of_arm, return_index=True)[1]]


def _require_fits(bandit: RestlessBandit, prior: Prior) -> None:
    if bandit.num_arms != prior.num_arms:
        raise ProblemError(
            f"the true bandit has {bandit.num_arms} arms, the prior is for {prior.num_arms}"
        )
    typical = [prior.typical(k) for k in range(prior.num_arms)]
    pairs = first_places(bandit.arms)[1] * len(typical) + first_places(typical)[1]
    for k in np.sort(np.unique(pairs, return_index=True)[1]).tolist():
        arm, expected = bandit.arms[k], typical[k]
        for what, here, there in rewards_of(arm, expected):
            if not np.array_equal(here, there):
                raise ProblemError(
                    f"{bandit.label(k)}: {what} are {here.tolist()}, the prior's are "
                    f"{there.tolist()}; rewards are known, so they must agree"
                )
        if arm.seen != expected.seen:
            raise ProblemError(
                f"{bandit.label(k)}: is seen {arm.seen!r}, by the prior {expected.seen!r}; when an "
                "arm is seen is known, so they must agree"
            )


def home_of_weights(weights: FloatArray) -> FloatArray:
    """A pool's home: its weights and their lifts (see `kernels.learn.weights`)."""
    largest = frexp(weights.max())[1]
    mantissas, powers = np.frexp(weights)
    exponents = powers - largest
    low = (weights > 0) & (exponents < LIFTED)
    lifts = np.where(low, LIFTED - exponents, 0).astype(np.float64)
    held = np.where(low, np.ldexp(mantissas, LIFTED + largest), weights)
    rows = num_rows(len(weights))
    between = np.zeros((rows // BLOCK + 2) * LANES)
    return np.concatenate([_in_lanes(held), between, _in_lanes(lifts)])


def home_size(rows: int) -> int:
    """Numbers in a home."""
    return LANES * (2 * rows + rows // BLOCK + 2)


def posterior_weights(home: FloatArray, count: int) -> FloatArray:
    """Normalised weights [count] of the slots in a home."""
    rows, places = num_rows(count), lane_places(count)
    lifts = home[-rows * LANES :][places]
    weights = np.ldexp(home[places], -lifts.astype(np.int64))
    return np.asarray(weights / weights.sum())


def aligned_zeros(size: int) -> FloatArray:
    """Zeros, where rows of LANES numbers do not straddle the processor's lines of 64 bytes.

    Memory that nobody writes to costs nothing.
    """
    zeros = np.zeros(size + LANES)
    first = (-zeros.ctypes.data % 64) // 8
    return zeros[first : first + size]


@lru_cache(maxsize=64)
def lane_places(count: int) -> IntArray:
    """Where each of `count` slots stands: row c % rows of lane c // rows."""
    rows = num_rows(count)
    slots = np.arange(count, dtype=np.int64)
    places = np.asarray((slots % rows) * LANES + slots // rows)
    places.setflags(write=False)
    return places


def _in_lanes(values: FloatArray) -> FloatArray:
    """Lay numbers by slot, on the last axis, out in lanes, filled up with zeros."""
    count = values.shape[-1]
    laid = np.zeros((*values.shape[:-1], num_rows(count) * LANES))
    laid[..., lane_places(count)] = values
    return laid


def kept_ages(prior: DirichletArmPrior) -> int:
    """Places for ages of an arm's particles: likelihoods are kept there once they are made.

    On the last one older ages take turns.
    """
    width = num_rows(prior.num_particles) * LANES
    return max(1, min(MOST_KEPT_AGES, MOST_KEPT // (prior.num_states**2 * width)))


def num_rows(count: int) -> int:
    """Rows for `count` slots: whole blocks, so that kernels need not look for the last."""
    return -(-count // (BLOCK * LANES)) * BLOCK
