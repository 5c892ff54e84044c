"""What a replay comes to, in a sentence."""

from __future__ import annotations

from math import isfinite

from restive.logs.decision import share_of
from restive.logs.decision_words import Units, percent_in_words
from restive.logs.replay import ONLY_AFTERWARDS, PlayedPolicy, Replay

__all__ = ["replay_sentence"]


def replay_sentence(played: Replay, units: Units) -> str:
    """Say what a replay comes to: the best policy that was played, against taking turns."""
    known = {
        p.policy: p
        for p in played.policies
        if isfinite(p.per_step) and p.kind in ("exact", "model-based") and p.note != ONLY_AFTERWARDS
    }
    if not known:
        return "Nothing can be said about other ways of choosing."
    best = max(known.values(), key=lambda p: p.per_step)
    base = known.get("round_robin") or known.get("random")
    if played.whole.is_guessed and best.kind != "exact":
        return (
            f"In short: this log does not show that {units.pulls} help anybody. The figures are "
            f"what {units.pulls} would be worth if they did what the model takes to be likely; "
            "where they change nobody, all ways of choosing come to the same."
        )
    how = "on the very record" if best.kind == "exact" else "by the model"
    said = (
        f"In short: of the policies played, {best.policy} earns most, {_played(best)} "
        f"{units.reward} a {units.step} ({how})"
    )
    if base is None:
        return f"{said}."
    turns = "taking turns" if base.policy == "round_robin" else "choosing at random"
    if base is best:
        return (
            f"In short: none of the policies played earns more than {turns}, {_played(base)} "
            f"{units.reward} a {units.step} ({how})."
        )
    said += f", against {_played(base)} for {turns}"
    mine, other = (played.by_world.get(p.policy) for p in (best, base))
    if mine is None or other is None or len(mine) != len(other) or other.min() <= 0:
        if best.low == best.high and base.low == base.high and base.per_step > 0:  # exact, both
            said += f": {100 * (best.per_step / base.per_step - 1):+.0f}%"
        return f"{said}."
    share = share_of(mine, other)
    sure = "" if share.is_clear else ", so that it is not sure to be better"
    return f"{said}: {percent_in_words(share)}{sure}."


def _played(found: PlayedPolicy) -> str:
    if found.low == found.high:
        return f"{found.per_step:.3g}"
    return f"{found.per_step:.3g} ({found.low:.3g} to {found.high:.3g})"
