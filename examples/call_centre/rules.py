"""Whom to call: rules that need no model, the oracle, and restive's learners.

A rule is a function (week, people who can be called, what is known) -> people to call. What came of
its calls it finds in `known.news`, once that is known. Here are makers of rules: given what is
known before the first week, and a seed for their own luck, they return a rule for a year. Some are
told more: `with_history` sees the log of another year, `law_given` what people of a kind are like.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from world import (
    BAD,
    NEVER,
    NOBODY,
    Ints,
    Known,
    People,
    Programme,
    Rule,
    World,
    draw_people,
    history,
)

import restive as rs

ENGAGED = (0.0, 1.0)  # a week pays 1 if its person is engaged, called or not
OLD = 10_000  # weeks since "the last sighting" of people whom nobody has ever seen
GIVE_UP_AFTER = 2
FOR_EXAMPLE = 1024  # people of a kind who stand for its law, where that is given
REST = 8  # weeks for which nobody is called again, where people rest after every call
LEARNT = "epochs"  # when the laws of kinds are estimated anew


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
        index = rs.policies.whittle_index(_arm(people, k))
        ages = np.minimum(np.arange(programme.weeks), index.index.shape[1] - 1)
        tables[k], unseen[k] = index.index[:, ages], index.limit

    def rule(week: int, people: Ints, known: Known) -> Ints:
        seen, state = known.seen[people], known.state[people]
        index = np.where(seen == NEVER, unseen[people], tables[people, state, week - seen - 1])
        return people[np.argsort(-index, kind="stable")][: programme.calls]

    return rule


def _arm(people: People, k: int) -> rs.Arm:
    """Return somebody as an arm."""
    return rs.Arm(_matrix(people.called[k]), _matrix(people.alone[k]), ENGAGED, ENGAGED)


def _matrix(chances: np.ndarray) -> np.ndarray:
    """Return the matrix [2, 2] of a chain with these p01 and p11."""
    return np.stack([1 - chances, chances], axis=1)


def learner(
    name: str, prior: rs.IndependentPrior, programme: Programme, seed: int, **options: object
) -> Rule:
    """Let an agent of restive make the calls.

    Whoever joins later is an arm from the start that cannot be called yet. An arm that nobody has
    called tells nothing about others, so this is the same as joining.
    """
    count = len(programme.kind)
    start = rs.BeliefState(np.ones(count, dtype=np.int64), np.full(count, OLD))
    agent = rs.make_learner(
        name, prior, programme.calls, horizon=programme.weeks, seed=seed, start=start, **options
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


# What the docs recommend


def by_kind(programme: Programme, laws: Sequence[rs.ArmPrior]) -> rs.IndependentPrior:
    """Everyone is as people of their kind are."""
    return rs.IndependentPrior([laws[kind] for kind in programme.kind.tolist()])


def no_history(programme: Programme, seed: int) -> Rule:
    """`live init --states ... --controlled --pay always`: kinds are learnt as it goes."""
    return as_it_goes(programme, seed, controlled=True, passive_rewards=ENGAGED)


def rested(programme: Programme, seed: int) -> Rule:
    """The same, but whoever was called is left alone for some weeks: `decide(unavailable=...)`."""
    rule = no_history(programme, seed)

    def after_rest(week: int, people: Ints, known: Known) -> Ints:
        called = known.called[people]
        free = people[(called == NEVER) | (called < week - REST)]
        return rule(week, free if len(free) >= programme.calls else people, known)

    return after_rest


def wrong_question(programme: Programme, seed: int) -> Rule:
    """The same for who answers no to both questions: calls only look, and only calls count."""
    return as_it_goes(programme, seed, controlled=False, passive_rewards=None)


def as_it_goes(
    programme: Programme,
    seed: int,
    controlled: bool,
    passive_rewards: tuple[float, float] | None,
) -> Rule:
    """Any chain may be anyone's at first, but no call hurts; each kind's law is learnt."""
    anyone = rs.spread_prior(
        1, ENGAGED, passive_rewards, controlled=controlled, helpful=controlled
    ).arms[0]
    laws = [anyone.with_weights(anyone.weights) for _ in range(1 + programme.kind.max())]
    prior = by_kind(programme, laws)
    return learner("mean_index", prior, programme, seed, learn_kinds=LEARNT)


def with_history(world: World, programme: Programme, seed: int) -> Rule:
    """`fit --controlled --pay always` of a year's log, `live init --prior` with what it found."""
    log = past_log(world, seed)
    fitted = rs.fit_log(log, controlled=True, passive_rewards=ENGAGED, checks=False)
    found = dict(zip(log.kinds, fitted.kind_priors, strict=True))
    return from_laws(found, programme, seed)


def past_log(world: World, seed: int) -> rs.types.Log:
    """Return the log of a year of another programme."""
    past = history(world, seed)
    seen = [report for report in past.reports if report.state != NOBODY]
    seen.sort(key=lambda report: report.person)
    columns = {
        "person": [report.person for report in seen],
        "week": [report.week for report in seen],
        "state": [report.state for report in seen],
        "kind": [int(past.kind[report.person]) for report in seen],
    }
    return rs.load_log(columns, arm="person", time="week", state="state", by="kind")


def from_laws(found: dict[str, Any], programme: Programme, seed: int) -> Rule:
    """Begin with laws of kinds that a log has spoken for."""
    anyone = rs.spread_prior(1, ENGAGED, ENGAGED, controlled=True).arms[0]
    laws = [found.get(str(kind), anyone) for kind in range(1 + programme.kind.max())]
    prior = by_kind(programme, laws)
    # of arms seen very often `fit` makes Dirichlet laws, which stay what they are
    learnt = any(isinstance(law, rs.ArmPrior) for law in laws)
    learn_kinds = LEARNT if learnt else None
    return learner("mean_index", prior, programme, seed, learn_kinds=learn_kinds)


def law_given(world: World, programme: Programme, seed: int, name: str = "mean_index") -> Rule:
    """People of a kind are like others of it whose chains are known, all as likely."""
    laws = []
    for kind, shares in enumerate(world.shares):
        others = replace(world, shares=(shares,), people=FOR_EXAMPLE, joining=0.0)
        like = draw_people(others, 2_000_000 + kind)  # nobody of the study itself
        laws.append(rs.ArmPrior([_arm(like, k) for k in range(FOR_EXAMPLE)]))
    return learner(name, by_kind(programme, laws), programme, seed)


def law_given_one_draw(world: World, programme: Programme, seed: int) -> Rule:
    """TSDE with the same law: follows one draw of everybody's chains instead of the mean."""
    return law_given(world, programme, seed, "tsde")


# What the docs recommended before, and what they warn of


def flat_prior(programme: Programme, pooled: bool = False) -> rs.IndependentPrior:
    """Every chain equally likely, called or not; pooled: people of a kind have the same."""
    ones = np.ones((2, 2))
    person = rs.DirichletArmPrior(ones, ones, ENGAGED, ENGAGED)
    kinds = [np.flatnonzero(programme.kind == kind) for kind in np.unique(programme.kind)]
    return rs.IndependentPrior([person] * len(programme.kind), pooled=kinds if pooled else ())


def tsde_flat(programme: Programme, seed: int) -> Rule:
    """TSDE that takes any chain to be as likely as any other, for each person alone."""
    return learner("tsde", flat_prior(programme), programme, seed)


def tsde_pooled(programme: Programme, seed: int) -> Rule:
    """TSDE that takes people of a kind for identical."""
    return learner("tsde", flat_prior(programme, pooled=True), programme, seed)


# What the study puts side by side, by name. A learner enters with a maker above and a line here:
# another name or prior for `learner`, or its own rule. The oracle is not among them, as it is told
# what nobody knows.
RULES: dict[str, Callable[[Programme, int], Rule]] = {
    "in turn": in_turn,
    "random": at_random,
    "worst first": worst_first,
    "give up after two": give_up,
    "mean index, no history": no_history,
    "mean index, rested": rested,
    "mean index, wrong question": wrong_question,
    "TSDE flat": tsde_flat,
    "TSDE pooled": tsde_pooled,
}

# Those that are told more of the world than its programme.
TOLD: dict[str, Callable[[World, Programme, int], Rule]] = {
    "mean index, with history": with_history,
    "mean index, law given": law_given,
    "TSDE, law given": law_given_one_draw,
}
