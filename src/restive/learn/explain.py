"""Why an arm is pulled, or not: what an agent knows of it, and how it compares with the others."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from math import fsum
from textwrap import fill
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from restive.errors import ProblemError, RestiveError
from restive.pages.frames import html_table
from restive.plan.policies.base import IndexPolicy
from restive.problem.arm import Arm
from restive.problem.beliefs import BeliefState
from restive.problem.chains import weighted

if TYPE_CHECKING:
    from restive.learn.agent_view import AgentView

__all__ = ["Explanation", "explain", "mean_index_by_age"]

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]

WIDTH = 80  # letters of a line


@dataclass(frozen=True, repr=False)
class Explanation:
    """Why arm `arm` is pulled now, or is not; `str()` says it in words, `to_json()` as data.

    Indices are those of the arm's last sighting and its age now. What has no number is None: the
    indices and all that follows from them under a mapping that has none.
    """

    arm: int
    name: str | None
    time: int  # of the present step
    last_state: str  # its name, or "state 0" and so on
    elapsed: int  # steps since it was seen
    belief: dict[str, float]  # chance of each state now, over the posterior
    expected_reward: float  # of pulling it now, over the posterior
    pulled: bool  # whether it is selected or, before the step is decided, would be
    decided: bool  # whether this step's arms have been selected
    index: float | None  # under the system drawn for the present episode, or on average
    index_at_mean: float | None  # if the arm were the mean of its posterior
    rank: int | None  # among all arms by that index, 1 is the highest
    num_pulls: int
    num_arms: int
    rival: int | None  # the last arm that is pulled or, for a pulled one, the first that is not
    rival_index: float | None
    pulled_at_age: int | None  # if others stayed as they are: the age at which it would be pulled
    averaged: bool = False  # whether indices are means over what arms may be, not those of a draw

    def to_json(self) -> dict[str, Any]:
        """Return the explanation as data for `json.dumps`."""
        return asdict(self)

    def __str__(self) -> str:
        lines = _sentences(self)
        return "\n".join(fill(line, WIDTH, subsequent_indent="  ") for line in lines)

    def __repr__(self) -> str:
        what = "pulled" if self.pulled else "not pulled"
        return f"Explanation(arm {self.arm}, {what}, time {self.time:,})"

    def _repr_html_(self) -> str:
        first, *rest = _sentences(self)
        return html_table(first, ("why",), [(line,) for line in rest])


def explain(agent: AgentView, k: int, among: IntArray | None = None) -> Explanation:
    """Explain arm k of an agent that has sampled a system.

    Parameters
    ----------
    agent, k
        The agent and the arm.
    among
        Arms that it competes with for a pull, itself among them; all by default.
    """
    policy = None if agent.averages else agent.sampled_policy
    if policy is None and not agent.averages:
        raise ProblemError("no system has been sampled yet: call select() first")
    arm, belief, state = agent.prior.typical(k), agent.belief(k), agent.belief_state
    names = arm.states or [f"state {s}" for s in range(arm.num_states)]
    ranking: _DrawRanking | _MeanRanking | None = None  # None under a mapping that has no index
    selected = agent.selected
    if policy is None:
        ranking = _MeanRanking(agent)
        selected = ranking.best() if selected is None else selected
    else:
        ranking = _DrawRanking(policy, state) if isinstance(policy, IndexPolicy) else None
        selected = policy.select(state) if selected is None else selected
    facts: dict[str, Any] = dict.fromkeys(
        ("index", "index_at_mean", "rank", "rival", "rival_index", "pulled_at_age")
    )
    if ranking is not None:
        rivals = np.arange(state.num_arms) if among is None else among
        facts = _standing(ranking, k, np.intersect1d(selected, rivals), rivals)
        facts["index_at_mean"] = _index_at_mean(agent, arm, k)
    return Explanation(
        arm=k,
        name=arm.name,
        time=agent.time,
        last_state=names[int(state.last_state[k])],
        elapsed=int(state.elapsed[k]),
        belief={name: float(p) for name, p in zip(names, belief, strict=True)},
        expected_reward=fsum(belief * arm.rewards),
        pulled=k in selected,
        decided=agent.selected is not None,
        num_pulls=len(selected if among is None else np.intersect1d(selected, among)),
        num_arms=agent.task.num_arms if among is None else len(among),
        averaged=agent.averages,
        **facts,
    )


class _DrawRanking:
    """How arms compare under the draw of the present episode: by ranks, the lowest wins ties."""

    def __init__(self, policy: IndexPolicy, state: BeliefState) -> None:
        self.state = state
        self.index, self.ranks = policy.index(state), policy.rank(state)
        self.ranked, self.kinds = policy.ranked, policy.kinds.of
        self.order = self.ranks * state.num_arms + np.arange(state.num_arms - 1, -1, -1)

    def age_of_pull(self, k: int, rival: int) -> int | None:
        """Return the first age from now on at which arm k beats the rival; None for never."""
        state, kind = self.state, self.kinds[k]
        length = int(self.ranked.lengths[kind])
        begin = int(self.ranked.offsets[kind]) + int(state.last_state[k]) * length
        later = self.ranked.ranks[begin : begin + length][min(int(state.elapsed[k]), length) - 1 :]
        return _first_age(later, self.ranks[rival], k, rival, int(state.elapsed[k]))


class _MeanRanking:
    """How arms compare by the mean of the index; values are compared, the lowest wins ties."""

    def __init__(self, agent: AgentView) -> None:
        self.agent, self.index = agent, agent.index()
        best_first = np.argsort(-self.index, kind="stable")
        self.order = np.empty(len(best_first), dtype=np.int64)
        self.order[best_first] = np.arange(len(best_first) - 1, -1, -1)

    def best(self) -> IntArray:
        """Return the arms that would be pulled."""
        best = np.argsort(-self.order, kind="stable")
        return np.sort(best[: self.agent.task.num_pulls])

    def age_of_pull(self, k: int, rival: int) -> int | None:
        """As of a draw, if nothing more were learnt."""
        later = mean_index_by_age(self.agent, k)
        later[0] = self.index[k]  # the sum is the same up to rounding, and this one decided
        elapsed = int(self.agent.belief_state.elapsed[k])
        return _first_age(later, self.index[rival], k, rival, elapsed)


def mean_index_by_age(agent: AgentView, k: int) -> FloatArray:
    """Mean index of arm k at its age now and at later ones, if nothing more were learnt.

    For learners that average the index, once they have decided. The last value is that of all
    older ages.
    """
    agent._mean_indices(np.array([k]))  # the tables are those of what is believed now
    (last_state, seen), policy = agent.last_seen(k), agent._learner_state.policy
    now = agent.time - seen
    if isinstance(policy, IndexPolicy):  # of a mapping that has no rule
        row = policy.table(k)[last_state]
        return np.array(row[min(now, len(row)) - 1 :])
    lookup, posterior = agent._actor.lookup, agent._actor.posterior
    group, weights = agent._group(k), agent.posterior(k).weights
    if draws := agent._learner_state.draws:
        drawn = posterior.weights.drawn.reshape(draws, -1)[:, group]
        weights = np.bincount(drawn, minlength=len(weights)) / draws
    held = np.flatnonzero(weights)
    if agent._particle_keeper.has(group):
        particles = posterior.particles
        kinds = lookup.home_kinds[particles.homes[particles.number_of[group]]] + held
    else:
        kinds = posterior.slots.kinds[posterior.slots.kind_offsets[k] + held]
    lengths = lookup.lengths[kinds]
    ages = np.arange(min(now, int(lengths.max())), int(lengths.max()) + 1)
    columns = np.minimum(ages, lengths[:, None]) - 1
    cells = (lookup.offsets[kinds] + last_state * lengths)[:, None] + columns
    means: FloatArray = weighted(lookup.indices[cells].T, weights[held])
    return means


def _standing(
    ranking: _DrawRanking | _MeanRanking, k: int, selected: IntArray, among: IntArray
) -> dict[str, Any]:
    """Where the arm stands among others, and what would change that."""
    index, order = ranking.index, ranking.order
    pulled = k in selected
    rival = age = None
    if pulled and len(selected) < len(among):
        left = np.setdiff1d(among, selected)
        rival = int(left[np.argmax(order[left])])
    elif not pulled and len(selected):
        rival = int(selected[np.argmin(order[selected])])
        age = ranking.age_of_pull(k, rival)
    return {
        "index": float(index[k]),
        "rank": int((order[among] > order[k]).sum()) + 1,
        "rival": rival,
        "rival_index": None if rival is None else float(index[rival]),
        "pulled_at_age": age,
    }


def _first_age(later: NDArray[Any], wanted: float, k: int, rival: int, elapsed: int) -> int | None:
    """First age from `elapsed` on at which arm k is above what the rival has, or wins the tie."""
    beats = np.flatnonzero((later > wanted) | ((later == wanted) & (k < rival)))
    return elapsed + int(beats[0]) if len(beats) else None


def _index_at_mean(agent: AgentView, arm: Arm, k: int) -> float | None:
    """Index of the arm that is the mean of the posterior, where the mapping is an index rule."""
    rule = agent.task.rule
    if rule is None:
        return None
    mean, state = agent.posterior(k).mean(), agent.belief_state
    try:
        pays = arm.rewards, arm.passive_rewards
        table = np.asarray(rule(Arm(mean.active, mean.passive, *pays, seen=arm.seen)))
    except RestiveError:  # a chain that has no index
        return None
    return float(table[state.last_state[k], min(int(state.elapsed[k]), table.shape[1]) - 1])


def _sentences(why: Explanation) -> list[str]:
    label = f"arm {why.arm}" if why.name is None else f"arm {why.arm} ({why.name!r})"
    if why.decided:
        verdict = "is pulled" if why.pulled else "is not pulled"
    else:
        verdict = "would be pulled" if why.pulled else "would not be pulled"
    ago = f", {why.elapsed:,} step{'s' * (why.elapsed > 1)} ago"
    if why.elapsed == 1 and why.belief.get(why.last_state) == 1.0:  # it is always seen, say
        ago = ", and it is still so"
    chances = ", ".join(f"{state} {chance:.1%}" for state, chance in why.belief.items())
    lines = [
        f"{label} {verdict} at time {why.time:,}",
        f"last seen: {why.last_state}{ago}",
        f"belief now: {chances}; a pull is expected to pay {why.expected_reward:.4g}",
    ]
    if why.index is None:
        return [*lines, "its policy mapping has no index, so arms have no rank"]
    mean = "" if why.index_at_mean is None else f", {why.index_at_mean:.6g} at the posterior mean"
    over = "on average over what it may be" if why.averaged else "under the present draw"
    are = "is" if why.num_pulls == 1 else "are"
    rank = f"rank {why.rank} of {why.num_arms:,}, {why.num_pulls:,} {are} pulled"
    return [*lines, f"index {why.index:.6g} {over}{mean}", rank, *_what_would_change(why)]


def _what_would_change(why: Explanation) -> list[str]:
    if why.rival is None:
        return [
            "nothing would change that: all arms are pulled" if why.pulled else "no arm is pulled"
        ]
    if why.pulled:
        return [f"it would give way to arm {why.rival} if its index fell to {why.rival_index:.6g}"]
    if why.pulled_at_age == why.elapsed:
        return [f"its rank is above that of arm {why.rival}, which is pulled: it was not available"]
    above = f"it would be pulled if its index rose above {why.rival_index:.6g} (arm {why.rival})"
    if why.pulled_at_age is None:
        known = "unless more is learnt" if why.averaged else "under this draw"
        return [f"{above}, which waiting alone will not do {known}"]
    wait = why.pulled_at_age - why.elapsed
    return [f"{above}: in {wait:,} step{'s' * (wait > 1)}, if the others stayed as they are"]
