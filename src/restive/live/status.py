"""Where a live agent stands: counts, rewards against forecasts, alarms."""

from __future__ import annotations

from typing import Any

from restive.live.answers import Alarm, Status
from restive.live.reading import OURS
from restive.live.session import Session
from restive.live.settings import AS_NOT_PULLED

__all__ = ["alarms", "rewards", "snapshot_age", "status"]


def alarms(session: Session) -> list[Alarm]:
    """Return what rings, and decisions that came out differently, until acknowledged."""
    done = {event.body["of"] for event in session.journal.events(kinds=("acknowledge",))}
    found = []
    for event in session.journal.events(kinds=("alarm", "divergence")):
        if event.seq in done:
            continue
        body = event.body
        if event.kind == "divergence":
            count = len(body["decisions"])
            body = {
                "name": "divergence",
                "sentence": f"{count} decisions came out differently when they were replayed by "
                f"restive {body['version']}; the journal's arms were kept",
            }
        found.append(Alarm(event.seq, body["name"], event.tick, body["sentence"]))
    return found


def status(session: Session) -> Status:
    """Tell where the agent stands."""
    memory, execute = session.memory, session.journal.connection.execute
    counts = dict(execute(f"SELECT status, count(*) FROM pull WHERE {OURS} GROUP BY status"))
    earned, foreseen = _sums(session)
    now = memory.open
    audit = _audit_mean(session)
    (decisions,) = execute("SELECT count(*) FROM event WHERE kind = 'decide'").fetchone()
    corrected = sum(len(event.body["arms"]) for event in session.journal.events(kinds=("correct",)))
    return Status(
        tick=memory.tick,
        label=memory.settings.clock.label(memory.tick) if memory.tick >= 0 else "",
        arms=memory.num_available,
        waiting=len(memory.roster) - memory.agent.task.num_arms,
        decided=0 if now is None else len(now.choice.arms),
        open=0 if now is None else len(now.missing),
        decisions=decisions,
        pulls=sum(counts.values()),
        seen=counts.get("seen", 0) + counts.get("late", 0) + counts.get("superseded", 0),
        unseen=counts.get("unseen", 0),
        late=counts.get("late", 0),
        superseded=counts.get("superseded", 0),
        not_pulled=counts.get("not-pulled", 0),
        reward=earned,
        forecast=foreseen,
        audit_mean=audit,
        unseen_by_last_state={s: (u, n) for s, (u, n) in sorted(memory.unseen.items())},
        corrections=corrected,
        approximate=not memory.roster.moves_alike and memory.settings.missing == AS_NOT_PULLED,
        events=memory.seq,
        alarms=tuple(alarms(session)),
    )


def snapshot_age(session: Session) -> float | None:
    """Seconds since the last snapshot was made; None if there is none."""
    (made,) = session.journal.connection.execute("SELECT max(at) FROM snapshot").fetchone()
    return None if made is None else (session.at - made) / 1e6


def _by_state(session: Session, what: str, where: str) -> list[tuple[Any, ...]]:
    """Sums over pulls by kind (or arm, under a joint prior) and state."""
    group = "pull.slot" if session.memory.roster.joint else "arm.prior - 1"
    return session.journal.connection.execute(
        f"SELECT {group}, state, {what} FROM pull JOIN arm USING (slot) "
        f"WHERE state IS NOT NULL AND {where} GROUP BY 1, 2"
    ).fetchall()


def _sums(session: Session) -> tuple[float, float]:
    rewards = session.memory.roster.rewards_by_group()
    rows = _by_state(session, "count(*), sum(expected)", OURS)
    earned = sum(rewards[group][state] * count for group, state, count, _ in rows)
    return earned, sum(mean for *_, mean in rows)


def _audit_mean(session: Session) -> float | None:
    rewards = session.memory.roster.rewards_by_group()
    rows = _by_state(session, "count(*)", "audit = 1")
    total = sum(count for *_, count in rows)
    return sum(rewards[g][state] * n for g, state, n in rows) / total if total else None


def rewards(session: Session) -> list[dict[str, Any]]:
    """Return reward and forecast of every decided tick.

    The forecast is of the pulls that were seen; mean and variance are those of all pulls.
    """
    memory = session.memory
    by_group = memory.roster.rewards_by_group()
    group = "pull.slot" if memory.roster.joint else "arm.prior - 1"
    earned: dict[int, list[float]] = {}
    for tick, key, state, count, mean in session.journal.connection.execute(
        f"SELECT tick, {group}, state, count(*), sum(expected) FROM pull JOIN arm USING (slot) "
        f"WHERE state IS NOT NULL AND {OURS} GROUP BY 1, 2, 3"
    ):
        row = earned.setdefault(tick, [0.0, 0.0, 0])
        row[0] += by_group[key][state] * count
        row[1] += mean
        row[2] += count
    found = []
    for event in session.journal.events(kinds=("decide",)):
        body = event.body
        reward, foreseen, seen = earned.get(event.tick, [0.0, 0.0, 0])
        found.append(
            {
                "tick": event.tick,
                "label": memory.settings.clock.label(event.tick),
                "pulls": len(body["arms"]),
                "seen": int(seen),
                "reward": reward,
                "forecast": foreseen,
                "mean": body.get("mean"),
                "variance": body.get("variance"),
            }
        )
    return found
