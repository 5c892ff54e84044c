"""A live agent's status in words."""

from __future__ import annotations

from restive.live.answers import Status

__all__ = ["status_lines"]


def status_lines(found: Status) -> list[str]:
    """Return what an operator looks at first, a line each."""
    when = f" ({found.label})" if found.label else ""
    lines = [
        f"tick {found.tick}{when}: {found.decided - found.open} of {found.decided} results are in"
        if found.tick >= 0
        else "nothing has been decided yet",
        f"{found.arms:,} arms" + (f", {found.waiting} join next" if found.waiting else ""),
        f"{found.pulls:,} pulls in {found.decisions:,} ticks: {found.seen:,} seen "
        f"({found.late:,} late, {found.superseded:,} too late to be used), {found.unseen:,} "
        f"unseen, {found.not_pulled:,} not pulled",
        f"reward {found.reward:,.1f}, forecast {found.forecast:,.1f}",
    ]
    if found.audit_mean is not None:
        lines.append(f"mean reward of audit pulls {found.audit_mean:.3f}: of arms drawn evenly")
    for state, (unseen, total) in sorted(found.unseen_by_last_state.items()):
        if found.unseen:
            lines.append(f"unseen after state {state}: {unseen} of {total} ({unseen / total:.0%})")
    if found.approximate:
        lines.append("approximate: pulls without a result count as not pulled")
    if found.corrections:
        lines.append(f"corrections that wait for `restive live rebuild`: {found.corrections}")
    lines += [f"ALARM {a.seq}, {a.name} (tick {a.tick}): {a.sentence}" for a in found.alarms]
    return lines
