"""Whom to call: rules that need no model, the oracle, and restive's learners.

A rule is a function (week, people who can be called, what is known) -> people to call. What came of
its calls it finds in `known.news`, once that is known. Here are makers of rules: given what is
known before the first week, and a seed for their own luck, they return a rule for a year.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from world import BAD, NEVER, NOBODY, Ints, Known, People, Programme, Rule

import restive as rs

ENGAGED = (0.0, 1.0)  # a week pays 1 if its person is engaged, called or not
OLD = 10_000  # weeks since "the last sighting" of people whom nobody has ever seen
GIVE_UP_AFTER = 2


def nobody(programme: Programme, seed: int) -> Rule:
    """Nobody is called: what calls are measured against."""
    return lambda week, people, known: people[:0]


def in_turn(programme: Programme, seed: int) -> Rule:
    """Whoever has waited longest since the last call, or since joining, is next."""

    def rule(week: int, people: Ints, known: Known) -> Ints:
        since = np.maximum(known.called[people], known.joined[people])
        return people[np.argsort(since, kind="stable")][: programme.calls]

    return rule


def at_random(programme: Programme, seed: int) -> Rule:
    """Anyone, evenly."""
    rng = np.random.default_rng([seed, 100])

    def rule(week: int, people: Ints, known: Known) -> Ints:
        return rng.permutation(people)[: programme.calls]

    return rule


def worst_first(programme: Programme, seed: int, give_up_after: int | None = None) -> Rule:
    """Those last seen in a bad state first; among equals, whoever was not seen for longest.

    Parameters
    ----------
    programme, seed
        As of every maker.
    give_up_after
        People seen bad in so many calls without a break go last.
    """

    def rule(week: int, people: Ints, known: Known) -> Ints:
        urgency = (known.state[people] != BAD).astype(np.int64)
        if give_up_after is not None:
            urgency[known.bad_calls[people] >= give_up_after] = 2
        order = np.lexsort((known.seen[people], urgency))  # NEVER is the longest ago
        return people[order][: programme.calls]

    return rule


def give_up(programme: Programme, seed: int) -> Rule:
    """Worst first, but whoever was seen bad twice in a row goes last."""
    return worst_first(programme, seed, GIVE_UP_AFTER)


def oracle(programme: Programme, people: People) -> Rule:
    """Whittle's index with everyone's chains known, everyone paying in every week."""
    tables = np.empty((len(people.kind), 2, programme.weeks))  # by state and weeks since, less one
    unseen = np.empty(len(people.kind))
    for k in range(len(tables)):
        arm = rs.Arm(_matrix(people.called[k]), _matrix(people.alone[k]), ENGAGED, ENGAGED)
        index = rs.whittle_index(arm)
        ages = np.minimum(np.arange(programme.weeks), index.index.shape[1] - 1)
        tables[k], unseen[k] = index.index[:, ages], index.limit

    def rule(week: int, people: Ints, known: Known) -> Ints:
        seen, state = known.seen[people], known.state[people]
        index = np.where(seen == NEVER, unseen[people], tables[people, state, week - seen - 1])
        return people[np.argsort(-index, kind="stable")][: programme.calls]

    return rule


def _matrix(chances: np.ndarray) -> np.ndarray:
    """Return the matrix [2, 2] of a chain with these p01 and p11."""
    return np.stack([1 - chances, chances], axis=1)


def learner(name: str, prior: rs.IndependentPrior, programme: Programme, seed: int) -> Rule:
    """Let an agent of restive make the calls.

    Whoever joins later is an arm from the start that cannot be called yet. An arm that nobody has
    called tells nothing about others, so this is the same as joining.
    """
    count = len(programme.kind)
    start = rs.BeliefState(np.ones(count, dtype=np.int64), np.full(count, OLD))
    agent = rs.make_learner(
        name, prior, programme.calls, horizon=programme.weeks, seed=seed, start=start
    )
    first = agent.time

    def rule(week: int, people: Ints, known: Known) -> Ints:
        # Calls are open until their results come, and a call that reached nobody did nothing: so
        # nothing counts as called here before it is seen, each at its own time.
        for report in known.news:
            if report.state != NOBODY:
                agent.observe_late(report.person, report.state, first + report.week)
        called = agent.select(min(programme.calls, len(people)), people)
        agent.observe([], arms=[], missing="not pulled")
        return called

    return rule


def flat_prior(programme: Programme, pooled: bool = False) -> rs.IndependentPrior:
    """Every chain equally likely, called or not; pooled: people of a kind have the same."""
    ones = np.ones((2, 2))
    person = rs.DirichletArmPrior(ones, ones, ENGAGED, ENGAGED)
    kinds = [np.flatnonzero(programme.kind == kind) for kind in np.unique(programme.kind)]
    return rs.IndependentPrior([person] * len(programme.kind), pooled=kinds if pooled else ())


def tsde_flat(programme: Programme, seed: int) -> Rule:
    """TSDE, as the docs recommend it for people whom calls change."""
    return learner("tsde", flat_prior(programme), programme, seed)


def certainty_flat(programme: Programme, seed: int) -> Rule:
    """Certainty equivalence with the same prior."""
    return learner("certainty_equivalence", flat_prior(programme), programme, seed)


def tsde_pooled(programme: Programme, seed: int) -> Rule:
    """TSDE that takes people of a kind for identical."""
    return learner("tsde", flat_prior(programme, pooled=True), programme, seed)


# What the study puts side by side, by name. A learner enters with a maker above and a line here:
# another name or prior for `learner` (such as `mean_index`, or the law of a kind), or its own rule.
# The oracle is not among them: it is told what nobody knows.
RULES: dict[str, Callable[[Programme, int], Rule]] = {
    "in turn": in_turn,
    "random": at_random,
    "worst first": worst_first,
    "give up after two": give_up,
    "TSDE flat": tsde_flat,
    "certainty equivalence": certainty_flat,
    "TSDE pooled": tsde_pooled,
}
