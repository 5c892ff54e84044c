"""One step of any learner, cut where Python may have to act.

A step is: begin (what is due before anything is chosen), choose, see, take in. The engine runs all
four in its loop, with a world of its own; an online agent runs the first two when it is asked and
the last when it is shown what was seen. Where Python must act (a learner plans, an index table is
made), `begin` returns an event, and is called again afterwards; the stage in `Meta.now` says where
to continue.

Parts of kernels that only some actors need are left out where their flag is None: `tsde` is for
TSDE, its relatives and policies beside them, `with_particles` for continuous priors among these,
`others` for the other learners. The compiler decides that, so whoever does not need a learner does
not wait until it is compiled.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from restive.kernels.jit.compiler import inlined, part, place
from restive.kernels.learn.channels import choose_by_value, follow_channels, see_channel
from restive.kernels.learn.conjugate import (
    choose_drawn,
    count_move,
    draw_conjugates,
    forget_moves,
    has_conjugates,
    impossible_move,
    is_conjugate,
)
from restive.kernels.learn.draws import draw_all, take_modes
from restive.kernels.learn.episodes import (
    begin_episode,
    begin_epoch,
    due,
    epoch_fits,
    forget_episodes,
    note_visits,
    visit,
)
from restive.kernels.learn.forgetting import fade_counts, fade_weights
from restive.kernels.learn.learners import (
    beta_bernoulli,
    qwi,
    regenerative_cycle,
    restless_ucb,
    ucb1,
    ucwhittle,
    wiql,
)
from restive.kernels.learn.learners.memory import PHASES, PLANNING
from restive.kernels.learn.mean_index import choose_by_mean
from restive.kernels.learn.particle_groups import (
    forget_particles,
    has_particles,
    impossible_for_particles,
    is_noted,
    must_count,
    prepare_sighting,
    take_central_slots,
)
from restive.kernels.learn.renewals import must_renew
from restive.kernels.learn.weights import (
    forget_all,
    impossible_arm,
    multiply_all,
    multiply_pending,
    take_in,
)
from restive.kernels.loop.actor import Actor
from restive.kernels.loop.choosing import top_arms
from restive.kernels.loop.index_lookup import (
    REBASED,
    choose_by_rank,
    follow_all,
    follow_kind,
    follow_pulled,
    hide_unavailable,
)
from restive.kernels.loop.tables import MYOPIC, NONE, NOT_PULLED, IndexLookup, Posterior
from restive.kernels.random import uniform_at

IntArray = NDArray[np.int64]

__all__ = [
    "begin",
    "choose",
    "end_step",
    "follow_drawn",
    "learn_arm",
    "learn_sighting",
    "num_phases",
    "see_arm",
    "start_over",
    "take_in_others",
    "wrong_arm",
]

# Who acts: a policy that is given, TSDE and its relatives, the other compiled learners, or somebody
# in Python.
POLICY, TSDE, UCB1, BETA_BERNOULLI, REGENERATIVE_CYCLE, RESTLESS_UCB = range(6)
UCWHITTLE, WIQL, QWI, PYTHON = range(6, 10)

# Stages of a step.
BEGIN, DRAW, FOLLOW, SEE = 0, 1, 2, 4  # numbers that snapshots hold

# What Python must do before the step can go on; GO is nothing.
GO = 0
PLAN = 1  # the learner's planning
GROW = 2  # room for more counters
MAKE_RANKS = 3  # of the system that was drawn
ASK = 4  # which arms to pull
TELL = 5  # what was seen of them
PAUSE = 6  # hear whether the user has had enough
RULED_OUT = 7  # nothing: what was seen cannot be, under any system
DONE = 8
RENEW = 9  # particles whose effective sample size is too small
COUNT = 10  # what was seen of arms with particles
LEARN_KINDS = 11  # estimate their laws from all arms


# Who acts is told beside the actor, so that the compiler sees that it does not change in a loop.


@part
def start_over(
    actor: Actor, start_state: IntArray, start_elapsed: IntArray, tsde: bool | None,
    with_particles: bool | None,
) -> None:  # fmt: skip
    """Go back to time 1; a compiled learner's memory is not touched."""
    meta = actor.meta
    for k in range(len(start_state)):
        meta.last_state[k] = start_state[k]
        meta.seen[k] = 1 - start_elapsed[k]
    meta.now[0].time = 1
    meta.now[0].stage = BEGIN
    actor.lookup.mode[0].since = -REBASED
    if tsde is not None and actor.role[0].who == TSDE:
        forget_all(actor.posterior)
        if with_particles is not None:
            forget_particles(actor.posterior)
            forget_moves(actor.posterior)
        forget_episodes(actor.episodes)


@inlined
def begin(
    actor: Actor, who: int, t: int, tsde: bool | None, others: bool | None,
    with_particles: bool | None,
) -> int:  # fmt: skip
    """Do what is due before arms can be chosen; GO, or what Python must do first."""
    if tsde is not None and who == TSDE:
        return _begin_tsde(actor, t, with_particles)
    if others is not None and who > TSDE:
        return PLAN if who != PYTHON and actor.memory.ints[PLANNING] != 0 else GO
    if t - actor.lookup.mode[0].since >= REBASED:
        follow_all(actor.lookup, actor.meta, t)
    return GO


@inlined
def _begin_tsde(actor: Actor, t: int, with_particles: bool | None) -> int:
    """Begin an epoch and an episode where one is due: draw a system and follow its policy."""
    posterior, episodes, lookup = actor.posterior, actor.episodes, actor.lookup
    clock, rules, now = episodes.clock[0], episodes.rules[0], actor.meta.now[0]
    if now.stage == BEGIN:
        if with_particles is not None and must_count(posterior):
            return COUNT
        if t >= clock.fading_due:
            if with_particles is not None and is_noted(posterior):
                return COUNT
            share = rules.fading_share * 2.0**-53
            fade_weights(posterior, share, clock.kinds_learnt, with_particles)
            if with_particles is not None:
                fade_counts(posterior, share)
            clock.fading_due = t + rules.fading_steps
        if t >= clock.kinds_due:
            return LEARN_KINDS
        if t == clock.epoch_end:
            if not epoch_fits(episodes):
                return GROW
            begin_epoch(episodes, t)
        reason = due(episodes, t)
        if reason == NONE:
            if t - lookup.mode[0].since >= REBASED:
                follow_all(lookup, actor.meta, t)
            return GO
        begin_episode(episodes, t, reason)
        if rules.fixed_limit != 0:  # otherwise nothing has waited
            multiply_all(posterior)
        now.stage = DRAW
    if now.stage == DRAW:
        if with_particles is not None and must_renew(posterior):
            return RENEW
        indexed = True
        if with_particles is not None and has_conjugates(posterior):
            indexed = draw_conjugates(actor)
        if rules.pick_mode != 0:
            if with_particles is not None:
                take_central_slots(posterior)
            take_modes(posterior)
        elif rules.draws > 0:
            draw_all(posterior, actor.role[0].key, clock.draws)
            clock.draws += len(posterior.weights.drawn)
        now.stage = FOLLOW
        if with_particles is not None and lookup.mode[0].valued != 0:
            if lookup.mode[0].valued <= MYOPIC:
                follow_channels(posterior, lookup)
            elif not indexed:
                return MAKE_RANKS
            now.stage = BEGIN
            return GO
        if lookup.mode[0].tabled == 0:
            return MAKE_RANKS
        if rules.draws != 1:  # means are looked up in every step
            now.stage = BEGIN
            return GO
        follow_drawn(posterior, lookup)
    follow_all(lookup, actor.meta, t)
    now.stage = BEGIN
    return GO


@inlined
def follow_drawn(posterior: Posterior, lookup: IndexLookup) -> None:
    """Let every arm follow the ranks of what was drawn for it."""
    slots = posterior.slots
    for k in range(len(lookup.begin)):
        drawn = posterior.weights.drawn[place(slots.groups[k])]
        follow_kind(lookup, k, slots.kinds[place(slots.kind_offsets[k] + drawn)])


@inlined
def choose(
    actor: Actor, who: int, t: int, count: int, tsde: bool | None, others: bool | None,
    with_particles: bool | None,
) -> int:  # fmt: skip
    """Write the `count` arms to pull, ascending; GO, or ASK where Python chooses."""
    mode = actor.lookup.mode[0]
    if others is not None:
        if who == PYTHON:
            return ASK
        if who > TSDE:
            _choose_others(actor, who, t, count)
            return GO
    if with_particles is not None and mode.valued != 0:
        if mode.valued <= MYOPIC:
            choose_by_value(actor, t, count)
        else:
            choose_drawn(actor, count)
    elif mode.asked != 0:
        return ASK
    elif tsde is not None and len(actor.lookup.indices) > 0:
        choose_by_mean(actor, t, count, with_particles)
    else:
        choose_by_rank(actor, t, count)
    if tsde is not None and who == TSDE and actor.episodes.rules[0].exploring != 0:
        _explore(actor, count)
    return GO


@part
def _explore(actor: Actor, count: int) -> None:
    """With the probability that the rules say, choose arms at random instead."""
    clock, rank, key = actor.episodes.clock[0], actor.lookup.rank, actor.role[0].key
    u = uniform_at(key, clock.draws)
    clock.draws += 1
    if u * 2.0**53 >= actor.episodes.rules[0].exploring:
        return
    for k in range(len(rank)):
        rank[k] = int(uniform_at(key, clock.draws + k) * 2.0**31)
    clock.draws += len(rank)
    if actor.role[0].masked != 0:
        hide_unavailable(actor)
    top_arms(rank, actor.chosen, count)


@part
def _choose_others(actor: Actor, who: int, t: int, count: int) -> None:
    """Let a learner that is not of TSDE's family choose."""
    knowledge, memory, key = actor.knowledge, actor.memory, actor.role[0].key
    available = actor.available if actor.role[0].masked != 0 else actor.available[:0]
    chosen = actor.chosen[:count]
    if who == UCB1:
        ucb1.choose(knowledge, memory, t, key, available, chosen)
    elif who == BETA_BERNOULLI:
        beta_bernoulli.choose(knowledge, memory, t, key, available, chosen)
    elif who == REGENERATIVE_CYCLE:
        regenerative_cycle.choose(knowledge, memory, t, key, available, chosen)
    elif who == RESTLESS_UCB:
        restless_ucb.choose(knowledge, memory, t, key, available, chosen)
    elif who == UCWHITTLE:
        ucwhittle.choose(knowledge, memory, t, key, available, chosen)
    elif who == WIQL:
        wiql.choose(knowledge, memory, t, key, available, chosen)
    elif who == QWI:
        qwi.choose(knowledge, memory, t, key, available, chosen)


@inlined
def learn_arm(
    actor: Actor, who: int, k: int, age: int, state: int, tsde: bool | None,
    with_particles: bool | None,
) -> bool:  # fmt: skip
    """Let TSDE learn that arm k was seen; tell whether its counter has more than doubled.

    The age is the arm's or, where it is always seen, 1 if it was pulled and NOT_PULLED if not.
    Learners that are not of TSDE's family take in all arms of a step together.
    """
    if tsde is None or who != TSDE:
        return False
    last_state = actor.meta.last_state[place(k)]
    learn_sighting(actor, k, last_state, age, state, with_particles)
    return visit(actor.episodes, k, last_state, age)


@inlined
def see_arm(actor: Actor, k: int, state: int, t: int, with_particles: bool | None) -> None:
    """Note that arm k was seen at time t, after `learn_arm`, which needs the state before."""
    meta, at = actor.meta, place(k)
    meta.last_state[at] = state
    meta.seen[at] = t
    if with_particles is not None and actor.lookup.mode[0].valued != 0:
        if actor.lookup.mode[0].valued <= MYOPIC:
            see_channel(actor.lookup, k, state)
    else:
        follow_pulled(actor.lookup, k, state, t)


@inlined
def learn_sighting(
    actor: Actor, k: int, last_state: int, age: int, state: int, with_particles: bool | None
) -> None:
    """Let the posterior learn that arm k was seen, `age` steps after it was in `last_state`."""
    posterior = actor.posterior
    group = posterior.slots.groups[place(k)]
    at_once = False
    if with_particles is not None:
        if has_particles(posterior, group):
            at_once = prepare_sighting(posterior, k, last_state, age, state)
        elif is_conjugate(posterior, group):
            count_move(posterior, group, last_state, age, state, 1.0)
            return
    each_step = actor.episodes.rules[0].fixed_limit == 0
    take_in(posterior, k, last_state, age, state, each_step)
    if with_particles is not None and at_once:
        multiply_pending(posterior, group)


@inlined
def wrong_arm(
    actor: Actor, pulled: IntArray, states: IntArray, count: int, shown: int,
    with_particles: bool | None,
) -> int:  # fmt: skip
    """Arm that is shown whose state is impossible by all that is left; or -1.

    The first `count` were pulled; others, up to `shown`, are always seen. Arms of one group must be
    possible together. All particles of a group rule out the same, so there each arm counts by
    itself.
    """
    posterior, meta, rows = actor.posterior, actor.meta, actor.scratch
    for i in range(shown):
        rows[i] = 0
        if with_particles is not None:
            k = pulled[i]
            age = meta.now[0].time - meta.seen[k] if i < count else NOT_PULLED
            if is_conjugate(posterior, posterior.slots.groups[k]):
                rows[i] = -1
                group = posterior.slots.groups[k]
                if impossible_move(posterior, group, meta.last_state[k], age, states[i]):
                    return int(k)
            elif has_particles(posterior, posterior.slots.groups[k]):
                rows[i] = -1
                if impossible_for_particles(posterior, k, meta.last_state[k], age, states[i]):
                    return int(k)
    return impossible_arm(posterior, meta, pulled, states, count, shown, rows)


@part
def take_in_others(actor: Actor, who: int, t: int, count: int, shown: int) -> None:
    """Let a learner that is not of TSDE's family learn; the meta-state follows.

    The first `count` of the chosen arms were pulled; others, up to `shown`, are always seen.
    """
    knowledge, memory, key = actor.knowledge, actor.memory, actor.role[0].key
    pulled, states = actor.chosen[:count], actor.states[:count]
    all_shown, all_states = actor.chosen[:shown], actor.states[:shown]
    if who == UCB1:
        ucb1.learn(knowledge, memory, t, key, pulled, states)
    elif who == BETA_BERNOULLI:
        beta_bernoulli.learn(knowledge, memory, t, key, pulled, states)
    elif who == REGENERATIVE_CYCLE:
        regenerative_cycle.learn(knowledge, memory, t, key, pulled, states)
    elif who == RESTLESS_UCB:
        restless_ucb.learn(knowledge, memory, t, key, pulled, states)
    elif who == UCWHITTLE:
        ucwhittle.learn(knowledge, memory, t, key, all_shown, all_states, count)
    elif who == WIQL:
        wiql.learn(knowledge, memory, t, key, all_shown, all_states, count)
    elif who == QWI:
        qwi.learn(knowledge, memory, t, key, all_shown, all_states, count)
    for i in range(shown):
        k = actor.chosen[i]
        actor.meta.last_state[k] = actor.states[i]
        actor.meta.seen[k] = t


@inlined
def end_step(actor: Actor, who: int, t: int, doubled: bool, tsde: bool | None) -> None:
    """Go to the next time."""
    actor.meta.now[0].time = t + 1
    actor.meta.now[0].stage = BEGIN
    if tsde is not None and who == TSDE:
        note_visits(actor.episodes, doubled)


@inlined
def num_phases(actor: Actor, who: int, tsde: bool | None, others: bool | None) -> int:
    """Episodes or phases begun, however the learner calls them."""
    if tsde is not None and who == TSDE:
        return int(actor.episodes.clock[0].episode)
    if others is not None and TSDE < who < PYTHON:
        return int(actor.memory.ints[PHASES])
    return 0
