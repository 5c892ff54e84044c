"""Why an arm is pulled, or not: what an agent knows of it, and how it compares with the others."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from restive.errors import ProblemError, RestiveError
from restive.pages.frames import html_table
from restive.plan.policies.base import IndexPolicy
from restive.problem.arm import Arm
from restive.problem.beliefs import BeliefState

if TYPE_CHECKING:
    from restive.learn.agent_view import AgentView

__all__ = ["Explanation", "explain"]

IntArray = NDArray[np.int64]


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
    index: float | None  # under the system drawn for the present episode
    index_at_mean: float | None  # if the arm were the mean of its posterior
    rank: int | None  # among all arms under the draw, 1 is the highest
    num_pulls: int
    num_arms: int
    rival: int | None  # the last arm that is pulled or, for a pulled one, the first that is not
    rival_index: float | None
    pulled_at_age: int | None  # if others stayed as they are: the age at which it would be pulled

    def to_json(self) -> dict[str, Any]:
        """Return the explanation as data for `json.dumps`."""
        return asdict(self)

    def __str__(self) -> str:
        return "\n".join(_sentences(self))

    def __repr__(self) -> str:
        what = "pulled" if self.pulled else "not pulled"
        return f"Explanation(arm {self.arm}, {what}, time {self.time:,})"

    def _repr_html_(self) -> str:
        first, *rest = _sentences(self)
        return html_table(first, ("why",), [(line,) for line in rest])


def explain(agent: AgentView, k: int) -> Explanation:
    """Explain arm k of an agent that has sampled a system."""
    policy, chosen = agent.sampled_policy, agent.selected
    if policy is None:
        raise ProblemError("no system has been sampled yet: call select() first")
    arm, belief, state = agent.prior.typical(k), agent.belief(k), agent.belief_state
    names = arm.states or [f"state {s}" for s in range(arm.num_states)]
    selected = policy.select(state) if chosen is None else chosen
    facts: dict[str, Any] = dict.fromkeys(
        ("index", "index_at_mean", "rank", "rival", "rival_index", "pulled_at_age")
    )
    if isinstance(policy, IndexPolicy):
        facts = _standing(policy, state, k, selected)
        facts["index_at_mean"] = _index_at_mean(agent, arm, k)
    return Explanation(
        arm=k,
        name=arm.name,
        time=agent.time,
        last_state=names[int(state.last_state[k])],
        elapsed=int(state.elapsed[k]),
        belief={name: float(p) for name, p in zip(names, belief, strict=True)},
        expected_reward=float(belief @ arm.rewards),
        pulled=k in selected,
        decided=chosen is not None,
        num_pulls=len(selected),
        num_arms=agent.task.num_arms,
        **facts,
    )


def _standing(
    policy: IndexPolicy, state: BeliefState, k: int, selected: IntArray
) -> dict[str, Any]:
    """Where the arm stands among the others under the draw, and what would change that."""
    num_arms = state.num_arms
    index, rank = policy.index(state), policy.rank(state)
    order = rank * num_arms + np.arange(num_arms - 1, -1, -1)  # the lowest arm wins ties
    pulled = k in selected
    rival = age = None
    if pulled and len(selected) < num_arms:
        left = np.setdiff1d(np.arange(num_arms), selected)
        rival = int(left[np.argmax(order[left])])
    elif not pulled and len(selected):
        rival = int(selected[np.argmin(order[selected])])
        age = _age_of_pull(policy, state, k, rival, int(rank[rival]))
    return {
        "index": float(index[k]),
        "rank": int((order > order[k]).sum()) + 1,
        "rival": rival,
        "rival_index": None if rival is None else float(index[rival]),
        "pulled_at_age": age,
    }


def _age_of_pull(
    policy: IndexPolicy, state: BeliefState, k: int, rival: int, rank: int
) -> int | None:
    """The first age from now on at which arm k beats the rival's rank; None where it never does."""
    kind = policy.kinds.of[k]
    length = int(policy.ranked.lengths[kind])
    begin = int(policy.ranked.offsets[kind]) + int(state.last_state[k]) * length
    ranks, now = policy.ranked.ranks[begin : begin + length], int(state.elapsed[k])
    later = ranks[min(now, length) - 1 :]
    beats = np.flatnonzero((later > rank) | ((later == rank) & (k < rival)))
    return now + int(beats[0]) if len(beats) else None


def _index_at_mean(agent: AgentView, arm: Arm, k: int) -> float | None:
    """Index of the arm that is the mean of the posterior, where the mapping is an index rule."""
    rule = agent.task.rule
    if rule is None:
        return None
    mean, state = agent.posterior(k).mean(), agent.belief_state
    try:
        table = np.asarray(rule(Arm(mean.active, mean.passive, arm.rewards, arm.passive_rewards)))
    except RestiveError:  # a chain that has no index
        return None
    return float(table[state.last_state[k], min(int(state.elapsed[k]), table.shape[1]) - 1])


def _sentences(why: Explanation) -> list[str]:
    label = f"arm {why.arm}" if why.name is None else f"arm {why.arm} ({why.name!r})"
    if why.decided:
        verdict = "is pulled" if why.pulled else "is not pulled"
    else:
        verdict = "would be pulled" if why.pulled else "would not be pulled"
    ago = f"{why.elapsed:,} step{'s' * (why.elapsed > 1)} ago"
    chances = ", ".join(f"{state} {chance:.1%}" for state, chance in why.belief.items())
    lines = [
        f"{label} {verdict} at time {why.time:,}",
        f"last seen: {why.last_state}, {ago}",
        f"belief now: {chances}; a pull is expected to pay {why.expected_reward:.4g}",
    ]
    if why.index is None:
        return [*lines, "its policy mapping has no index, so arms have no rank"]
    mean = "" if why.index_at_mean is None else f", {why.index_at_mean:.6g} at the posterior mean"
    lines.append(
        f"index {why.index:.6g} under the present draw{mean}; rank {why.rank} of "
        f"{why.num_arms:,}, {why.num_pulls:,} {'is' if why.num_pulls == 1 else 'are'} pulled"
    )
    return [*lines, *_what_would_change(why)]


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
        return [f"{above}, which waiting alone will not do under this draw"]
    wait = why.pulled_at_age - why.elapsed
    return [f"{above}: in {wait:,} step{'s' * (wait > 1)}, if the others stayed as they are"]
