"""A recommendation as sentences: what to do, what it earns over simple ways, whom to pull first."""

from __future__ import annotations

from restive.plan.policies.registry import mapping_title
from restive.plan.recommendation import ERRORS, Gain, Recommendation, arm_names, last_states
from restive.problem.bandit import RestlessBandit, always_seen, kinds_of

__all__ = ["gain_in_words", "percent", "recommendation_sentences"]

HOW = {  # what one does who follows a policy; of others their title says enough
    "best_fixed": "always pull the same arms",
    "whittle": "in each step pull the arms with the highest Whittle index",
    "best_index": "in each step pull the arms with the highest index, by the best table found",
    "lp_priority": "in each step pull the arms with the highest LP priority",
    "myopic": "in each step pull the arms that are expected to pay most at once",
    "optimal": "in each step pull the arms that the optimal policy selects",
}
LITTLE = 5e-4  # share: "as much as"


def recommendation_sentences(found: Recommendation, bandit: RestlessBandit) -> list[str]:
    """Say what to do, in one line each."""
    earned = f"{found.average_reward:.4f}{_error(found)} per step"
    if bandit.num_pulls == bandit.num_arms:
        return [f"Nothing to choose: all arms are pulled in every step, which earns {earned}."]
    if not found.matters:
        return [
            f"It makes no difference which arms you pull: every policy earns {earned}. If pulls "
            "change how arms move, give each [[arm]] an active and a passive matrix."
        ]
    how = HOW.get(found.policy, mapping_title(found.policy))
    own, ways = found.own_reward, []
    if found.over_round_robin is not None:
        ways.append((found.over_round_robin, "taking turns"))
    if found.over_best_fixed is not None and found.policy != "best_fixed":
        ways.append((found.over_best_fixed, "always pulling the best fixed arms"))
    compared = [_compared(gain.with_own(own), what) for gain, what in ways]
    than = f": {' and '.join(compared)}" if compared else ""
    lines = [f"Recommended: {found.policy}. {_capital(how)}.", f"It earns {earned}{than}."]
    if own:
        added = [f"{what} {gain.over:.4f}" for gain, what in ways]
        where = f", {' and '.join(added)}" if added else ""
        lines.append(
            f"Of that, {own:.4f} comes without any pull; pulls add "
            f"{found.average_reward - own:.4f}{where}."
        )
    elif any(arm.pays_unpulled for arm in kinds_of(bandit).arms):
        lines.append("The arms earn 0 by themselves: all of that comes from pulls.")
    which = arm_names(bandit, found.first)
    noun = "arm" if len(found.first) == 1 else "arms"
    tied = "; others are nearly as good" if found.nearly else ""
    tied = "; others are as good, the first in the file go first" if found.tied else tied
    if found.policy == "best_fixed":
        return [*lines, f"Pull always: {noun} {which}{tied}."]
    when, seen = "if nothing was seen lately", always_seen(bandit)
    if seen.all():
        when = f"with all arms {last_states(bandit)}"
    elif seen.any():
        when += f", and with arms that are always seen {last_states(bandit)}"
    return [*lines, f"Pull first, {when}: {noun} {which}{tied}."]


def gain_in_words(gain: Gain) -> str:
    """Return a gain with its interval: "28% more", "12% (9 to 15) more", "0.2 more per step"."""
    share = gain.share
    if share is None:
        ends = "" if gain.low == gain.high else f" ({gain.low:.3g} to {gain.high:.3g})"
        return f"{gain.more:.4g}{ends} more per step"
    more, low, high = share
    if max(abs(low), abs(high)) < LITTLE:
        return "as much"
    if percent(low) == percent(high):
        return f"{percent(abs(more))}% {'more' if more > 0 else 'less'}"
    if low <= 0 <= high:
        return f"as much, within the error ({percent(low)} to {percent(high)}%)"
    if more < 0:
        return f"{percent(-more)}% ({percent(-high)} to {percent(-low)}) less"
    return f"{percent(more)}% ({percent(low)} to {percent(high)}) more"


def percent(share: float) -> str:
    """Return a share in percent, with a digit after the point where it is small."""
    value = 100 * share
    return f"{value:.0f}" if abs(value) >= 10 else f"{value:.1f}"


def _compared(gain: Gain, what: str) -> str:
    words = gain_in_words(gain)
    than = "as" if words.startswith("as much") else "than"
    if than == "as" and words != "as much":
        return f"{words.replace('as much', f'as much as {what}', 1)} [{gain.over:.4f}]"
    return f"{words} {than} {what} ({gain.over:.4f})"


def _error(found: Recommendation) -> str:
    if not found.stderr:
        return " (exact)"
    half = ERRORS * found.stderr
    middle = found.average_reward
    return f" (95%: {middle - half:.4f} to {middle + half:.4f})"


def _capital(text: str) -> str:
    return text[:1].upper() + text[1:]
