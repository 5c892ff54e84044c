"""What kernels take: tables that never change, and what learners remember.

A kind is an arm without its name; however many arms are of it, its tables are there once. Kernels
get the tables and, apart, the kind of each arm. All arrays are flat, so that a handle can hold them
(`kernels.jit.handles`).

A table has a row per last state and a column per age, 1 to `length`; older arms use the last.
`cell_of` is the one formula for where something about (last state, age) stands in it. An arm that
is always seen has two columns instead, for steps in which it is pulled and in which it is not: in
place of its age stands 1 or NOT_PULLED.

Single numbers with names are records (`kernels.jit.records`): `meta.now[0].time`.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from restive.kernels.jit.compiler import inlined
from restive.kernels.jit.records import Block, Records

__all__ = [
    "NOT_PULLED",
    "BeliefTables",
    "ConjugateGroups",
    "DirichletPriors",
    "EpisodeClock",
    "EpisodeRules",
    "Episodes",
    "IndexLookup",
    "LookupMode",
    "Meta",
    "Now",
    "ParticleGroups",
    "ParticlesNow",
    "Posterior",
    "PriorStarts",
    "RankTables",
    "Slots",
    "WeightStatus",
    "Weights",
    "cell_of",
]

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]
Int32Array = NDArray[np.int32]
BoolArray = NDArray[np.bool_]
KeyArray = NDArray[np.uint64]


class BeliefTables(NamedTuple):
    """Beliefs and rewards by kind.

    The belief of a cell begins at offset + cell * size, its expected rewards are at
    mean_offset + cell (`cell_of`). What an arm pays while it is not pulled is there only if
    some arm pays then.
    """

    beliefs: FloatArray
    thresholds: FloatArray  # as beliefs: u is drawn as the number of thresholds <= u
    offsets: IntArray  # [kinds]
    means: FloatArray  # b(s, n).r
    mean_offsets: IntArray  # [kinds]
    passive_means: FloatArray  # b(s, n).r_p, or empty
    passive_totals: FloatArray  # sums of these over ages 1 to n, or empty
    rewards: FloatArray
    reward_offsets: IntArray  # [kinds]
    sizes: IntArray  # [kinds] numbers of states
    lengths: IntArray  # [kinds] numbers of ages; 2 of an arm that is always seen: pulled or not
    always: IntArray  # [kinds] whether it is always seen; empty if none is


class RankTables(NamedTuple):
    """Ranks of the index by kind; that of a cell is at offset + cell."""

    ranks: IntArray
    offsets: IntArray  # [kinds]
    lengths: IntArray  # [kinds] numbers of ages


class Now(Block):
    """Where a learner stands in time."""

    time: int  # t, from 1
    stage: int  # what of this step is done, see kernels.loop.steps


class Meta(NamedTuple):
    """The meta-state of all arms, and the time. Every learner has it."""

    last_state: IntArray  # [K] in which each arm was last seen
    seen: IntArray  # [K] time at which it was
    now: Records[Now]  # [1]


class Slots(NamedTuple):
    """The arms that may be drawn now, and how likely each makes what is seen.

    Arms that share one draw are a group: each arm by itself, or all arms under a joint prior. A
    slot is a number within a group; under a joint prior it is a whole system. The likelihoods of
    (s, n, s') are a number for each slot, b_slot(s, n)[s'], and begin at
    offset + (cell * size + s') * width.

    Numbers by slot are laid out in rows of LANES: slot c stands in row c % rows of lane c // rows,
    zeros fill up whole blocks of rows. So processors add lanes side by side, and lanes follow the
    slots' order.
    """

    groups: IntArray  # [K] group of each arm
    row_counts: IntArray  # [groups] multiples of BLOCK
    kinds: IntArray  # kind of arm in each slot
    kind_offsets: IntArray  # [K]
    likelihoods: FloatArray  # arms that share a prior share a table
    offsets: IntArray  # [K]
    lengths: IntArray  # [K] numbers of ages
    sizes: IntArray  # [K] numbers of states
    losses: IntArray  # [K] bits by which an observation can lower a weight


class WeightStatus(Block):
    """What is to be known of all weights together."""

    shared: int  # where the homes that groups share end
    free: int  # where the next home begins
    impossible: int  # 1 + a group all of whose slots have been ruled out, 0 if there is none


class Weights(NamedTuple):
    """The posterior: a weight for each slot of each group, up to a factor per group.

    A group's numbers are its home: rows of weights, of sums over blocks, of sums over lanes, the
    total, and the lifts (`kernels.learn.weights`). Groups of one prior share its home, which never
    changes, until something was seen of them.
    """

    numbers: FloatArray  # the homes
    homes: IntArray  # [groups] where each group's home begins
    first_homes: IntArray  # [groups] the same before anything was seen, or learnt of kinds
    pending: IntArray  # [groups * BUFFER] likelihoods to be multiplied, by where they begin
    num_pending: IntArray  # [groups]
    lost: IntArray  # [groups] bits that weights may have lost since they were last rescaled
    drawn: IntArray  # [draws * groups] slots that were drawn last, one of each group, then the next
    changed: BoolArray  # [groups] whether the weights have changed since
    uniforms: FloatArray  # [AT_ONCE] scratch for random numbers
    status: Records[WeightStatus]  # [1]


BLOCK = 4  # rows of weights that make a block
BUFFER = 16  # observations of a group that may wait; most episodes bring fewer
AT_ONCE = 64  # groups whose random numbers are made together

# Weights are rescaled by a power of two before they can fall below 2^-1022. A weight that is then
# below 2^-600 of the largest is lifted there, and its lift is remembered: so it stays exact, and
# is too small to matter until the next rescaling, whatever is seen. Only where all larger weights
# are ruled out does it matter at once: a total below 2^-450 shows that, and calls for a rescaling.
# Likelihoods below 2^-300 count as that much.
MOST_LOSS = 300
LEAST_LIKELIHOOD = 2.0**-MOST_LOSS
LIFTED = -600  # exponent of two
FAINT = 2.0**-450
MOST_SHIFT = 4096  # bits: more than this makes any float 0


class PriorStarts(Block):
    """Where the numbers of a continuous prior begin."""

    entries: int  # alphas
    rows: int  # totals, references and, one more for each prior before, firsts
    free_numbers: int  # columns, precisions
    generators: int


class DirichletPriors(NamedTuple):
    """What is fixed of continuous priors, one after the other (`kernels.learn.dirichlet`)."""

    alphas: FloatArray
    totals: FloatArray
    references: IntArray
    firsts: IntArray
    columns: IntArray
    precisions: FloatArray
    generators: IntArray
    starts: Records[PriorStarts]  # [priors + 1] where the numbers of each begin, and where all end
    enough: FloatArray  # [priors] effective size that new particles should have
    evident: IntArray  # [priors] whether something was seen beforehand


class ParticlesNow(Block):
    """What is to be known of all particle groups together."""

    num_sightings: int  # that are written down
    fades: int  # whether what was seen loses weight
    runs: int  # how often it started over: what was counted before then does not count


class ParticleGroups(NamedTuple):
    """Groups with continuous priors: their slots hold particles, which are renewed now and then.

    Such a group is a particle group, and has a number among these. Its particles live in a home:
    their matrices [R, S] in lanes, of the only matrix (R = S) or of the active and the passive one
    and their likelihoods, which stand among those of `Slots` and are filled in as they are needed,
    age by age. Behind the matrices, where what was seen fades, are the logarithms of what their
    weights would be had nothing been seen. Particle groups of one prior share the home of its
    points until their first renewal; its number is that of their prior. Fillers of the lanes hold
    some chain too, so that no number is impossible.

    Sightings are counted by age, as `kernels.learn.particles` has it, from the moment a particle
    group is first counted in a run; before that, and at great ages, they are written down.

    P is the number of particle groups.
    """

    number_of: IntArray  # [groups] as a particle group, -1 if it is none; empty if none is
    homes: IntArray  # [P] number of its home
    first_homes: IntArray  # [P] the same before the first renewal, and that of its prior
    own_homes: IntArray  # [P] home for particles that are renewed, -1 until it is made
    sizes: IntArray  # [P] S
    num_rows: IntArray  # [P] R
    num_particles: IntArray  # [P] M
    effective_sizes: FloatArray  # [P] effective sample size after the last renewal
    first_effective_sizes: FloatArray  # [P] the same before the first
    chains: FloatArray  # the matrices
    chain_starts: IntArray  # [homes] where a home's matrices begin
    logits: FloatArray  # the logits [d, M] of homes
    logit_starts: IntArray  # [homes] where a home's logits begin
    row_starts: IntArray  # [homes] where its likelihoods begin
    filled: IntArray  # [homes] ages whose likelihoods are there
    scratch: FloatArray  # for beliefs at an age whose likelihoods are not kept
    ages: IntArray  # counted
    cells: FloatArray  # [.., S, S] counts by age
    age_starts: IntArray  # [P] where the ages of each begin
    age_capacities: IntArray  # [P] ages for which there is room
    cell_starts: IntArray  # [P] where the counts of each begin
    num_ages: IntArray  # [P] ages in use
    renewals: IntArray  # [P] how often the particles were drawn anew
    begun: IntArray  # [P] the run in which these began to count
    ready: IntArray  # [P] ages that are known to be counted and to have likelihoods
    sightings: IntArray  # [.. * SIGHTING] what was seen and is not counted yet
    firsts: IntArray  # [P] number of its first sighting, -1 if there is none
    lasts: IntArray  # [P] number of the last
    now: Records[ParticlesNow]  # [1]
    keys: KeyArray  # [1] names the random numbers of renewals
    renewal: FloatArray  # scratch for one renewal, see kernels.learn.renewals
    priors: DirichletPriors


SIGHTING = 4  # numbers of a sighting: the group's next one or -1, last state, age, state


class ConjugateGroups(NamedTuple):
    """Groups of arms that are always seen, with Dirichlet priors (`kernels.learn.conjugate`).

    The numbers of a group are matrices [R, S], of the only one (R = S) or of the active and the
    passive one, and begin at its start; its rewards [2, S] and indices [S] at 2 and 1 times its
    index start. C is the number of such groups.
    """

    number_of: IntArray  # [groups] among these, -1 if it is none; empty if none is
    sizes: IntArray  # [C] S
    num_rows: IntArray  # [C] R
    starts: IntArray  # [C]
    alphas: FloatArray  # of the priors, with what was seen beforehand; 0 for what cannot be
    counts: FloatArray  # of what was seen since
    drawn: FloatArray  # matrices that were drawn last, or means
    index_starts: IntArray  # [C]
    rewards: FloatArray  # of pulled and of other steps
    indices: FloatArray  # of the states, under what was drawn
    scratch: FloatArray  # for one index
    averaged: IntArray  # [1] draws that stand for the whole posterior


class Posterior(NamedTuple):
    """What is believed of the arms."""

    slots: Slots
    weights: Weights
    particles: ParticleGroups
    conjugates: ConjugateGroups


class EpisodeClock(Block):
    """Where TSDE stands in its episodes: one record of whole numbers."""

    episode: int  # number of the current episode, from 1; 0 before the first
    started: int  # t_i
    last_length: int  # T_(i-1)
    limit: int  # steps after t_i at which rule 1 ends the episode
    doubled: int  # whether a counter has more than doubled in this episode
    reason: int  # why the episode before the current one ended
    epoch: int  # number of the epoch, from 0
    epoch_end: int  # time at which the next epoch begins
    truncation: int  # T^mix
    draws: int  # random numbers used
    stamped: int  # episodes that were stamped before this run
    floor: int  # what counters of this epoch begin with; those below have not been visited in it
    kinds_due: int  # time at which the laws of kinds are estimated anew
    kinds_learnt: int  # how often that was done
    fading_due: int  # time at which what was seen next loses weight


class EpisodeRules(Block):
    """When episodes end and what is played in them; TSDE itself is (-1, 1, 0, 0, 1, ...)."""

    fixed_limit: int  # limit of every episode, -1 for the length of the one before (rule 1)
    doubling: int  # whether rule 2 is on
    pick_mode: int  # whether the most likely system is taken instead of a draw
    exploring: int  # steps in 2^53, on average, in which arms are pulled at random
    draws: int  # of each arm in an episode, whose indices are averaged; 0 for the whole posterior
    learn_kinds: int  # whether laws of kinds are estimated from all their arms, now and then
    fading_steps: int  # steps after which what was seen loses weight, 0 for never
    fading_share: int  # how much of its weight it keeps then, in 2^53
    longest: int  # limit of episodes whose length is not fixed
    horizon_known: int  # whether there is but one epoch


class Episodes(NamedTuple):
    """Where TSDE stands in its episodes."""

    clock: Records[EpisodeClock]  # [1]
    visits: IntArray  # [cells * VISITS] by (arm, state, truncated age)
    size_starts: IntArray  # [K + 1] states of all arms before this one
    truncations: IntArray  # [epochs] T^mix of each
    rules: Records[EpisodeRules]  # [1] they never change


# Why an episode ended.
NONE, LENGTH_RULE, DOUBLING_RULE, EPOCH_RULE = 0, 1, 2, 3

# A cell's numbers in `visits`: floor + N_t, its value when the episode of the stamp began, and
# the stamp, which names the episode in which the cell was last visited.
COUNT, BASE, STAMP = 0, 1, 2
VISITS = 3
FLOOR_STEP = 1 << 40  # more than any counter


class LookupMode(Block):
    """How an index policy is followed."""

    since: int  # the time from which `first` counts
    tabled: int  # whether the ranks of all kinds are there; else Python makes them for each system
    asked: int  # whether the policy has no ranks, so that Python asks it in every step
    valued: int  # which values are compared instead of ranks, 0 for none; see WHITTLE
    stands: int  # the time for which `values` and the powers in `channels` stand, -1 if for none


class IndexLookup(NamedTuple):
    """The index policy that is followed: the ranks of each arm, and where it stands in them.

    Arm k is at first[k] + t - since in `ranks`, or at last[k] once that is passed. Small whole
    numbers, since with a million arms a step is one pass over them.
    """

    ranks: Int32Array
    offsets: IntArray  # [kinds]
    lengths: IntArray  # [kinds] numbers of ages
    first: Int32Array  # [K]
    last: Int32Array  # [K]
    begin: Int32Array  # [K] where the arm's ranks begin
    length: Int32Array  # [K] numbers of ages
    rank: Int32Array  # [K] scratch for the ranks now
    indices: FloatArray  # by kind, where means of them are followed; else empty
    home_kinds: IntArray  # [homes] kind of the first particle in a home, where these have tables
    channels: FloatArray  # [CHANNEL * W] where indices have a closed form: what it needs
    values: FloatArray  # [W] scratch for them, or [K] for means
    mode: Records[LookupMode]  # [1]


# Values that are compared instead of ranks: computed in every step from `channels`, or those of
# what was drawn of conjugate groups.
WHITTLE, MYOPIC, DRAWN_WHITTLE, DRAWN_MYOPIC = 1, 2, 3, 4

# What `channels` hold, for each arm: number i of arm k is at i * W + k, where W is K filled up to
# whole rows of LANES. Fillers pay -inf.
LOW = 0  # reward in the worse state
SPAN = 1  # how much more the better pays
GOOD = 2  # which state is the better
FIRST_BAD = 3  # index one step after it was seen in the worse state
FIRST_GOOD = 4  # and in the better
RHO = 5  # STAY - RISE
POWER = 6  # RHO^age
AGE = 7
SEEN_BAD = 8  # 1 if it was last seen in the worse state, else 0
A, B_GOOD, B_BAD, D, E_BAD, F, CAP = range(9, 16)  # of the index (`kernels.learn.channels`)
RISE = 16  # probability to go from the worse to the better
STAY = 17  # probability to stay in the better
CHANNEL = 18


NOT_PULLED = 2  # in place of the age of an arm that is always seen; where it is pulled that is 1


@inlined
def cell_of(last_state: int, age: int, length: int) -> int:
    """Cell of an arm that was seen in `last_state`, `age` steps ago."""
    return last_state * length + min(age, length) - 1
