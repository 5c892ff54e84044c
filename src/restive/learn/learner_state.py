"""A learner on a task: its arrays, and what Python must do for it.

The compiled steps (`kernels.loop.steps`) work on an `Actor`, a tuple of arrays. A `LearnerState`
makes these arrays and answers the events with which the steps return. Engine and online agent hold
a learner's state each and drive it, so what a learner does is written once.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from restive.arguments import counted, require_memory
from restive.errors import ProblemError
from restive.kernels.elementary import exponentials
from restive.kernels.jit.handles import Handle
from restive.kernels.jit.records import new_record
from restive.kernels.jit.vectors import LANES
from restive.kernels.learn.learners.memory import OWN, LearnerMemory
from restive.kernels.learn.weights import add_up_groups
from restive.kernels.loop import steps
from restive.kernels.loop.actor import Actor
from restive.kernels.loop.tables import (
    AT_ONCE,
    BUFFER,
    CHANNEL,
    DRAWN_MYOPIC,
    DRAWN_WHITTLE,
    GOOD,
    LOW,
    MYOPIC,
    SPAN,
    VISITS,
    WHITTLE,
    EpisodeClock,
    Episodes,
    IndexLookup,
    Meta,
    Posterior,
    Slots,
    Weights,
    WeightStatus,
)
from restive.learn.kind_laws import KindLaws
from restive.learn.learners.base import Compiled, Learner, Relative
from restive.learn.particle_groups import ParticleKeeper
from restive.learn.particle_tables import ParticleTables
from restive.learn.slots import aligned_zeros, home_size
from restive.learn.task import Facts, Task
from restive.plan.actors import (
    int_zeros,
    lookup_of,
    no_conjugates,
    no_particles,
    plain_actor,
)
from restive.plan.policies.base import IndexPolicy, Policy, tabled_policy
from restive.problem.bandit import Kinds, RestlessBandit
from restive.problem.beliefs import BeliefState

__all__ = ["LearnerState", "prior_weights", "require_sees"]

IntArray = NDArray[np.int64]

# Mappings whose indices the loop computes: of channels, and of what is drawn of conjugate groups.
FORMS = {"whittle": WHITTLE, "myopic": MYOPIC}
DRAWN_FORMS = {"whittle": DRAWN_WHITTLE, "myopic": DRAWN_MYOPIC}
MOST_EPOCHS = 51  # of 1, 2, 4, ... steps: more steps than can be counted


class LearnerState:
    """Everything that a learner, or the policy that knows the truth, remembers on a task.

    Parameters
    ----------
    task
        What is to be done.
    learner
        Who does it; None for somebody in Python, or for the policy that knows the truth.
    steps
        Steps for which there must be room at once; more is made when it is needed.
    knows
        Whether this is the policy that knows the truth.
    """

    def __init__(
        self, task: Task, learner: Learner | None, steps: int = 1, *, knows: bool = False
    ) -> None:
        self.task = task
        self.learner = learner
        # of the sampled system, where it was made for it
        self.policy: Policy | None = None
        self.followed: RestlessBandit | None = None
        # particles of arms with continuous priors, and their index tables where these are averaged
        self.particle_keeper: ParticleKeeper | None = None
        self.particle_tables: ParticleTables | None = None
        self.draws = 1  # of each arm in an episode; 0 for the whole posterior
        self.kind_laws: KindLaws | None = None  # where these are learnt
        self.actor = self._actor(steps, knows)

    def _actor(self, num_steps: int, knows: bool) -> Actor:
        task, learner = self.task, self.learner
        if isinstance(learner, Relative):
            self.draws = learner.rules(task.facts).draws
            if self.draws == 0 and task.rule is None:
                raise self._no_index()
            require_sees(learner, task)
            if learner.rules(task.facts).learn_kinds:
                self.kind_laws = KindLaws(task, learner.name)
            weights = prior_weights(
                task, task.choices.slots, max(1, self.draws), laws=self.kind_laws is not None
            )
            fades = learner.rules(task.facts).forget_after is not None
            self.particle_keeper = ParticleKeeper(
                task.choices, task.choices.slots, weights, fades=fades
            )
            actor = plain_actor(steps.TSDE, task.start, self._lookup())
            return actor._replace(
                posterior=self.particle_keeper.posterior,
                episodes=_episodes(task, learner, num_steps),
            )
        if isinstance(learner, Compiled):
            require_sees(learner, task)
            actor = plain_actor(learner.number, task.start)
            memory = _memory(learner, task.facts, actor.meta)
            return actor._replace(knowledge=task.facts.knowledge, memory=memory)
        if knows:
            return plain_actor(steps.POLICY, task.start, lookup_of(task.ranks, task.num_arms))
        return plain_actor(steps.PYTHON, task.start)

    def _lookup(self) -> IndexLookup:
        """Return how a relative of TSDE follows what it has drawn."""
        task, averaging = self.task, self.draws != 1 and self.task.rule is not None
        assert self.particle_keeper is not None
        if task.choices.has_particles:
            lookup = lookup_of(None, task.num_arms)
            if task.choices.has_conjugates:
                return self._drawn_lookup(lookup)
            if averaging:
                self.particle_tables = ParticleTables(task, self.particle_keeper)
                return self.particle_tables.begin(lookup)
            return (channel_lookup(task) if self.draws == 1 else None) or lookup
        lookup = lookup_of(task.ranks, task.num_arms)
        if not averaging:
            return lookup
        values = np.concatenate([table.ravel() for table in task.index_tables])
        return lookup._replace(indices=values, values=np.zeros(task.num_arms))

    def _drawn_lookup(self, lookup: IndexLookup) -> IndexLookup:
        """Return how arms that are always seen are followed, where some have Dirichlet priors."""
        if not _draws_indices(self.task):
            return lookup
        lookup.mode["valued"] = DRAWN_FORMS[str(self.task.mapping)]
        return lookup._replace(values=np.zeros(self.task.num_arms))

    @property
    def time(self) -> int:
        """The time t of the next or current step, from 1."""
        return int(self.actor.meta.now["time"][0])

    @property
    def belief_state(self) -> BeliefState:
        """When and in which state each arm was last seen."""
        return BeliefState(self.actor.meta.last_state, self.time - self.actor.meta.seen)

    @property
    def is_drawn(self) -> bool:
        """Whether the loop computes the indices of what it draws: all arms are conjugate."""
        return bool(self.actor.lookup.mode[0].valued > MYOPIC)

    def weight_left(self, time: int) -> float:
        """Return what a sighting of a time that has passed still weighs."""
        assert isinstance(self.learner, Relative)
        forget_after, episodes = (
            self.learner.rules(self.task.facts).forget_after,
            self.actor.episodes,
        )
        if forget_after is None:
            return 1.0
        steps = int(episodes.rules[0].fading_steps)
        losses = (int(episodes.clock[0].fading_due) - 1) // steps - 1 - (time - 1) // steps
        return float(exponentials([-losses * steps / forget_after])[0]) if losses > 0 else 1.0

    def _drawn(self, layer: int) -> IntArray:
        """Slots [groups] of the system that was drawn last, or of another one drawn with it."""
        weights = self.actor.posterior.weights
        count = len(weights.homes)
        return weights.drawn[layer * count : (layer + 1) * count]

    def sampled_kinds(self, layer: int = 0) -> IntArray:
        """Kinds [K] of the arms that were drawn last."""
        slots = self.actor.posterior.slots
        kinds: IntArray = slots.kinds[slots.kind_offsets + self._drawn(layer)[slots.groups]]
        return kinds

    def sampled_bandit(self, layer: int = 0) -> RestlessBandit:
        """Return the system that was drawn last."""
        assert self.particle_keeper is not None
        sampled_kinds = self.sampled_kinds(layer)
        if not self.task.choices.has_particles:
            return self.task.bandit_of(sampled_kinds)
        groups, drawn = self.actor.posterior.slots.groups, self._drawn(layer)
        conjugates = self.particle_keeper.conjugates
        arms = []
        for group, kind in zip(groups.tolist(), sampled_kinds.tolist(), strict=True):
            if self.particle_keeper.has(group):
                arms.append(self.particle_keeper.arm(group, int(drawn[group])))
            elif conjugates.has(group):
                arms.append(conjugates.arm(group))
            else:
                arms.append(self.task.choices.kinds.arms[kind])
        return RestlessBandit(arms, self.task.num_pulls)

    def sampled_policy(self, layer: int = 0) -> Policy:
        """Return the policy of the system that was drawn last."""
        if not self.task.choices.has_particles:
            return self.task.policy_of(self.sampled_kinds(layer))
        return self.task.policy_for(self.sampled_bandit(layer))

    def respond(self, event: int) -> None:
        """Do what the compiled steps ask for; the actor may have other arrays afterwards."""
        if event == steps.PLAN:
            assert isinstance(self.learner, Compiled)
            self.learner.plan(self.task.facts, self.actor.memory)
        elif event == steps.GROW:
            self.make_counters(int(self.actor.episodes.clock[0].epoch) + 1)
        elif event == steps.MAKE_RANKS:
            self.follow_sampled()
        elif event == steps.COUNT:
            self.count_sightings()
        elif event == steps.RENEW:
            self._renew()
        elif event == steps.LEARN_KINDS:
            self.learn_kinds()
        elif event == steps.RULED_OUT:
            raise self._ruled_out()
        else:
            raise AssertionError(f"nobody answers event {event}")

    def make_counters(self, epoch: int) -> None:
        """Make room for the counters of an epoch; what was counted is gone."""
        visits = _visits(self.task, int(self.actor.episodes.truncations[epoch]))
        if len(visits) > len(self.actor.episodes.visits):
            episodes = self.actor.episodes._replace(visits=visits)
            self.actor = self.actor._replace(episodes=episodes)

    def count_sightings(self) -> None:
        """Count what was seen of arms with particles."""
        if self.particle_keeper is not None and self.task.choices.has_particles:
            self.particle_keeper.count()
            self.use_particles()

    def _renew(self) -> None:
        """Draw particles anew where their effective size is too small."""
        assert self.particle_keeper is not None
        if self.actor.posterior.weights.status[0].impossible != 0:
            raise self._ruled_out()
        self.particle_keeper.renew()
        self.use_particles()

    def learn_kinds(self) -> None:
        """Estimate the laws of kinds from all their arms."""
        assert self.kind_laws is not None
        self.kind_laws.learn(self.actor.posterior, self.actor.episodes.clock[0], self.time)

    def use_particles(self) -> None:
        """Take the arrays of the particle groups, which may have been replaced."""
        assert self.particle_keeper is not None
        posterior = self.particle_keeper.posterior
        if posterior is not self.actor.posterior:
            self.actor = self.actor._replace(posterior=posterior)

    def follow_sampled(self) -> None:
        """Follow the policy of the system that was drawn last."""
        if self.is_drawn:  # an arm without an index: planning says why
            self.task.policy_for(self.sampled_bandit())
            return
        if self.actor.lookup.mode[0].valued:
            return  # the compiled steps need no tables
        if self.draws != 1:
            self._follow_means()
            return
        if self.task.choices.has_particles:
            bandit = self.sampled_bandit()
            self._follow(self.task.policy_for(bandit), bandit)
        else:
            self.follow(self.sampled_kinds())

    def _follow_means(self) -> None:
        """Make ready what the compiled steps average, or the means where an index has no rule."""
        if self.task.rule is None:
            self._follow(self._mean_policy(), None)
            return
        if self.particle_tables is None:  # candidates alone have had theirs from the start
            return
        lookup = self.particle_tables.update(self.actor.lookup, self._averaged_slots())
        if lookup is not self.actor.lookup:
            self.actor = self.actor._replace(lookup=lookup)

    def _averaged_slots(self) -> Iterator[tuple[int, IntArray]]:
        """Yield the particle groups, each with the slots over which its index is averaged."""
        assert self.particle_keeper is not None
        weights = self.actor.posterior.weights
        drawn = weights.drawn.reshape(-1, len(weights.homes))
        for group in range(len(weights.homes)):
            if self.particle_keeper.has(group):
                count = self.particle_keeper.num_particles(group)
                yield group, np.unique(drawn[:, group]) if self.draws else np.arange(count)

    def _mean_policy(self) -> IndexPolicy:
        """Return the policy of the mean of what the drawn systems' indices are."""
        policies = [self.sampled_policy(layer) for layer in range(self.draws)]
        tables = []
        for k in range(self.task.num_arms):
            own = []
            for policy in policies:
                if not isinstance(policy, IndexPolicy):
                    raise self._no_index()
                own.append(policy.table(k))
            length = max(table.shape[1] for table in own)
            ages = np.arange(length)
            total = np.zeros((len(own[0]), length))
            for table in own:
                total += table[:, np.minimum(ages, table.shape[1] - 1)]
            tables.append(total / self.draws)
        bandit = self.sampled_bandit()
        kinds = Kinds(
            bandit.arms, tuple(map(bandit.label, range(len(tables)))), np.arange(len(tables))
        )
        return tabled_policy(bandit, kinds, tables, self.task.mapping_name)

    def _no_index(self) -> ProblemError:
        assert self.learner is not None
        return ProblemError(
            f"learner {self.learner.name} averages an index, and the policy mapping "
            f"{self.task.mapping_name!r} has none that can be averaged; use 'whittle' or 'myopic'"
        )

    def follow(self, kinds: IntArray) -> None:
        """Follow the policy of a system whose arms are of these kinds."""
        policy = self.task.policy_of(kinds)
        self._follow(
            policy, None if isinstance(policy, IndexPolicy) else self.task.bandit_of(kinds)
        )

    def _follow(self, policy: Policy, bandit: RestlessBandit | None) -> None:
        self.policy = policy
        lookup = self.actor.lookup
        lookup.mode["asked"] = not isinstance(policy, IndexPolicy)
        if not isinstance(policy, IndexPolicy):
            self.followed = bandit
            return
        ranks = policy.ranked.ranks
        if len(ranks) > len(lookup.ranks):
            lookup = lookup._replace(ranks=np.zeros(2 * len(ranks), dtype=np.int32))
            self.actor = self.actor._replace(lookup=lookup)
        lookup.ranks[: len(ranks)] = ranks
        lookup.begin[:] = policy.ranked.offsets[policy.kinds.of]
        lookup.length[:] = policy.ranked.lengths[policy.kinds.of]

    def _ruled_out(self) -> ProblemError:
        group = int(self.actor.posterior.weights.status[0].impossible) - 1
        arms = np.flatnonzero(self.actor.posterior.slots.groups == group).tolist()
        who = f"arm {arms[0]}" if len(arms) == 1 else "the arms"
        return ProblemError(
            f"what was seen of {who} has probability zero under every candidate: the prior rules "
            "out the true bandit"
        )


def _draws_indices(task: Task) -> bool:
    """Whether the loop computes the indices of what is drawn: of arms that are always seen."""
    return task.choices.all_conjugate and task.mapping in DRAWN_FORMS


def require_sees(learner: Learner, task: Task) -> None:
    """Raise where a learner is not for arms that are seen as these are."""
    if isinstance(learner, Relative):
        averages = learner.rules(task.facts).draws != 1
        if averages and task.choices.has_conjugates and not _draws_indices(task):
            raise ProblemError(
                f"learner {learner.name} averages an index, which for arms that are always "
                "seen and have Dirichlet priors it can only where all arms are such and the "
                "mapping is 'whittle' or 'myopic'"
            )
    if not isinstance(learner, Compiled):
        return
    wanted = getattr(learner, "sees", "pulled") == "always"
    for k, always in enumerate(task.facts.always_seen):
        if always != wanted:
            when = "always seen" if always else "seen when pulled"
            other = "always seen" if wanted else "seen when pulled"
            raise ProblemError(
                f"learner {learner.name} is for arms that are {other}, and arm {k} is {when}"
            )


def channel_lookup(task: Task) -> IndexLookup | None:
    """Return how to follow channels by the closed forms of their indices; None where there is none.

    All arms must be channels with continuous priors: ranks of tables and values do not compare.
    """
    channels = all(
        p is not None
        and p.num_states == 2
        and p.passive is None
        and (p.active > 0).all()
        and not p.typical.pays_unpulled
        for p in task.choices.continuous
    )
    if not channels or task.mapping not in FORMS or task.max_elapsed is not None:
        return None
    lookup = lookup_of(None, task.num_arms)
    rewards = np.array(task.facts.rewards)
    good = (rewards[:, 1] >= rewards[:, 0]).astype(np.float64)
    low, high = np.sort(rewards, axis=1).T
    width = -(-task.num_arms // LANES) * LANES
    columns = np.zeros((CHANNEL, width))
    columns[LOW] = -np.inf  # fillers are never chosen
    arms = np.s_[: task.num_arms]
    columns[LOW, arms], columns[SPAN, arms], columns[GOOD, arms] = low, high - low, good
    lookup.mode["valued"] = FORMS[str(task.mapping)]
    return lookup._replace(channels=columns.ravel(), values=np.zeros(width))


def prior_weights(task: Task, slots: Slots, draws: int = 1, *, laws: bool = False) -> Weights:
    """Weights before anything was seen, with room for those of every group, and so many draws.

    Where laws of kinds are learnt there is room for these as well, behind the prior's own weights.
    """
    choices = task.choices
    num_groups, shared = len(choices.pool_of_group), len(choices.prior_homes) * (1 + laws)
    own = sum(
        home_size(int(rows)) * int(count)
        for rows, count in zip(*np.unique(slots.row_counts, return_counts=True), strict=True)
    )
    require_memory(8 * (shared + own), "the posterior's weights", "use fewer arms or candidates")
    numbers = aligned_zeros(shared + own)
    numbers[: len(choices.prior_homes)] = choices.prior_homes
    weights = Weights(
        numbers=numbers,
        homes=choices.first_homes.copy(),
        first_homes=choices.first_homes,
        pending=int_zeros(num_groups * BUFFER),
        num_pending=int_zeros(num_groups),
        lost=int_zeros(num_groups),
        drawn=int_zeros(draws * num_groups),
        changed=np.ones(num_groups, dtype=bool),
        uniforms=np.zeros(AT_ONCE),
        status=new_record(WeightStatus, shared=shared, free=shared),
    )
    handle = Handle(Posterior(slots, weights, no_particles(), no_conjugates()))
    add_up_groups(handle.where, np.unique(choices.pool_of_group, return_index=True)[1])
    return weights


def _episodes(task: Task, learner: Relative, num_steps: int) -> Episodes:
    rules = learner.rules(task.facts)
    known = task.horizon is not None
    epochs = 1 if known else MOST_EPOCHS
    truncations, longest = int_zeros(epochs), 0
    if rules.doubling_rule:  # otherwise nothing is counted, and the mixing time does not matter
        truncations = np.array([task.truncation(epoch) for epoch in range(epochs)], dtype=np.int64)
        longest = int(truncations[0 if known else num_steps.bit_length() - 1])
    return Episodes(
        clock=new_record(EpisodeClock),
        visits=_visits(task, longest),
        size_starts=np.concatenate([[0], np.cumsum(task.choices.sizes)]).astype(np.int64),
        truncations=truncations,
        rules=rules.as_record(known),
    )


def _visits(task: Task, longest_truncation: int) -> IntArray:
    """Room for counters that tell at most this many ages apart."""
    cells = int(task.choices.sizes.sum()) * longest_truncation
    require_memory(
        8 * cells * VISITS,
        f"the counters of {counted(task.num_arms, 'arm')}",
        "pass a smaller mixing_time or horizon",
    )
    return int_zeros(cells * VISITS)


def _memory(learner: Compiled, facts: Facts, meta: Meta) -> LearnerMemory:
    num_ints, num_floats = learner.memory_size(facts)
    memory = LearnerMemory(
        last_state=meta.last_state,
        seen=meta.seen,
        ints=int_zeros(OWN + num_ints),
        floats=np.zeros(num_floats),
        values=np.zeros(facts.num_arms),
    )
    learner.begin(facts, memory)
    return memory
