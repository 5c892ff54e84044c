"""LP priority: rank the arms by what pulling them is worth at the relaxation's price of a pull.

Unlike Whittle's index it needs no indexability, and it couples the arms through that one price. Its
J may depend on the start where Whittle's does not.
"""

from __future__ import annotations

from restive.plan.policies.base import IndexPolicy, tabled_policy
from restive.plan.relaxation import Relaxation, relaxed, require_relaxation
from restive.problem.bandit import RestlessBandit

__all__ = ["lp_priority"]


def lp_priority(
    bandit: RestlessBandit,
    *,
    max_elapsed: int | None = None,
    relaxation: Relaxation | None = None,
) -> IndexPolicy:
    """Return the policy that pulls the N arms with the largest advantage at the best price.

    The index of arm k in (s, n) is A_k(s, n; lambda_N), with lambda_N the minimiser of the
    relaxation (`relaxation.relaxed`): positive where the relaxed problem would pull the arm. Where
    A jumps at that very price (it is some arm's limiting index: below it the arm is pulled for
    ever, above it hardly at all) the value from above is taken, which earns more: the arm is there
    to fill places, not to hold them.

    J may depend on the start: among arms that fall into a bad state and that pulls mend, paid only
    when pulled, it does on more than half of small random systems, and the worse class can earn a
    fifth less. `evaluate` reports it (`depends_on_start`, `average_reward_range`), and `best_index`
    counts such a policy by its worst class.

    Parameters
    ----------
    bandit
        The arms and the number of pulls.
    max_elapsed
        Ages told apart, for arms that mix too slowly for the automatic choice.
    relaxation
        The relaxed problem, where it has been solved already.
    """
    require_relaxation(relaxation)
    solution = relaxed(bandit, max_elapsed) if relaxation is None else relaxation
    tables = [path.advantage(solution.subsidy) for path in solution.paths]
    return tabled_policy(bandit, solution.kinds, tables, "lp_priority")
