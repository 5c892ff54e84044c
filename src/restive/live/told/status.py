"""Where a live agent stands: alarms, counts, and rewards: earned, foreseen, possible, to come."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import isnan
from shlex import quote
from typing import Any

import numpy as np
from numpy.typing import NDArray

from restive.arguments import checked_count, checked_seed, counted
from restive.learn.snapshots import learned_data, load_snapshot
from restive.learn.task import Task
from restive.live.acts.forgetting import forgettable, forgettings, named, said_of_memory
from restive.live.journal.sql_tables import left_with, pulls_of
from restive.live.memory import Memory
from restive.live.session import ALARMS, Session
from restive.live.settings import AS_NOT_PULLED, LEAVE, NOT_PULLED, UNSEEN, Settings
from restive.live.told.alarms import sentence_now
from restive.live.told.answers import Alarm, Status, causes
from restive.live.told.futures import Futures
from restive.live.told.learned import MOST_LOOKED_AT, posterior
from restive.live.told.onset import compared, rang_on_others, watched_since
from restive.live.told.summaries import Totals
from restive.live.words import PLAIN, Words
from restive.plan.relaxation import relaxation_bound
from restive.problem.arm import Arm
from restive.problem.bandit import RestlessBandit

__all__ = [
    "Forecast",
    "Headroom",
    "alarm_lines",
    "alarms",
    "forecast",
    "headroom",
    "rewards",
    "status",
    "status_lines",
]

FloatArray = NDArray[np.float64]

RECENT = 52  # ticks
MOST_LEFT = 11  # arms that have left, which are named but for one
DIVERGENCE = "divergence"
CORRECTED = "it rang on results that have changed since; by those of now nothing is off"


def alarms(session: Session) -> list[Alarm]:
    """Return what rings, and decisions that came out differently, until acknowledged.

    Alarms of one name are one.
    """
    journal, clock = session.journal, session.memory.settings.clock
    withdrawn = journal.withdrawn()
    found: dict[str, Alarm] = {}
    for event in journal.events(kinds=(*ALARMS, "acknowledge")):
        if event.seq in withdrawn:
            continue
        body = event.body
        if event.kind == "acknowledge":
            found.pop(body["name"], None)
            continue
        name, sentence, count = DIVERGENCE, "", len(body.get("decisions", ""))
        began = body.get("began")
        if event.kind == "alarm":
            name, count = body["name"], 1
            words = session.memory.settings.words
            off = compared(session, name, began or 0, event.tick)
            sentence = sentence_now(name, body["sentence"], words, off)
            if began is not None and rang_on_others(session, name, began, event.tick):
                began, sentence = None, f"{CORRECTED} ({off}): only say what was found"
        one = found.get(name)
        if one is None:
            label = clock.label(event.tick)
            one = Alarm(
                body.get("number", event.seq), name, event.tick, sentence, label, 0, event.tick,
                began, "" if began is None else clock.label(began),
            )  # fmt: skip
        count += one.count
        if event.kind == "divergence":
            sentence = (
                f"{counted(count, 'decision')} came out differently when replayed by restive "
                f"{body['version']}, and those of the journal were kept: look whether the version "
                "or the machine was changed"
            )
        found[name] = replace(one, sentence=sentence, count=count, last=event.tick)
    return [one if one.began is None else _since(session, one, one.began) for one in found.values()]


def _since(session: Session, alarm: Alarm, began: int) -> Alarm:
    """Tell of an alarm on rewards whether it was watched before, and what is forgotten by now."""
    memory = session.memory
    slots = named(memory, None, alarm.kind)
    forgotten = any(memory.forgotten.get(slot, 0) >= began for slot in slots)
    return replace(
        alarm,
        watched_since=watched_since(session, alarm.name, began, alarm.tick),
        forgotten=forgotten and not forgettable(memory, slots, began),
    )


def status(session: Session) -> Status:
    """Tell where the agent stands."""
    memory = session.memory
    totals = session.summaries.totals(session)
    counts, now = totals.statuses, memory.open
    withdrawn = session.journal.withdrawn()
    corrected = {
        (event.tick, slot)
        for event in session.journal.events(kinds=("correct",))
        if event.seq not in withdrawn
        for slot in event.body["arms"]
    }
    return Status(
        tick=memory.tick,
        label=memory.settings.clock.label(memory.tick) if memory.tick >= 0 else "",
        arms=memory.num_available,
        waiting=len(memory.roster) - memory.num_joined,
        left=len(memory.gone),
        left_last=tuple(memory.roster.names[slot] for slot in list(memory.gone)[:-MOST_LEFT:-1]),
        always_seen=memory.roster.some_always_seen,
        decided=0 if now is None else len({*now.choice.arms, *now.always}),
        open=0 if now is None else len(now.missing),
        unshown=0 if now is None else len(now.unshown),
        decisions=totals.decisions,
        pulls=sum(counts.values()),
        seen=counts.get("seen", 0) + counts.get("late", 0) + counts.get("superseded", 0),
        unseen=counts.get("unseen", 0),
        missing=totals.missing,
        leaving=_leaving(session),
        waiting_pulls=counts.get("open", 0),
        late=counts.get("late", 0),
        superseded=counts.get("superseded", 0),
        not_pulled=counts.get("not-pulled", 0),
        reward=totals.reward,
        forecast=totals.forecast,
        audit_mean=_audit_mean(memory, totals),
        unseen_by_last_state={s: (u, n) for s, (u, n) in sorted(memory.unseen.items())},
        corrections=len(corrected),
        approximate=not memory.roster.moves_alike and memory.settings.missing == AS_NOT_PULLED,
        pulled_only=memory.roster.pays_unpulled,
        events=memory.seq,
        alarms=tuple(alarms(session)),
        forget_after=memory.settings.learner.get("forget_after"),
        forgotten=tuple(forgettings(session)),
    )


def status_lines(found: Status, settings: Settings, path: str = "FILE") -> list[str]:
    """Return what an operator looks at first, a line each, in his words."""
    words = settings.words
    made = words.count(found.pulls, "pull")
    lines = [
        f"{words.when(found.tick, found.label)}: {found.decided - found.open} of {found.decided} "
        "results are in"
        if found.tick >= 0
        else "there is no list yet",
        words.count(found.arms, "arm")
        + (f", {found.waiting} of them from the next list on" if found.waiting else "")
        + _left(found),
        f"{made} in {words.count(found.decisions, 'tick')}: {', '.join(_parts(found, settings))}",
        f"{words.reward}: {found.reward:,.1f}, forecast {found.forecast:,.1f}",
    ]
    if found.unshown:
        lines.append(
            f"{words.count(found.unshown, 'arm')} not on the list, seen every {words.tick}: their "
            "states are missing, and the next list needs all of them; record a file"
        )
    if found.pulled_only:
        lines.append(
            f"{words.reward}, forecast and alarms are of {words.many('pull')} alone: "
            f"{words.many('arm')} count without one, too, and that is not in them"
        )
    if found.audit_mean is not None:
        lines.append(
            f"{words.reward} a {words.pull} to {words.many('arm')} drawn evenly: "
            f"{found.audit_mean:.3f}"
        )
    for state, (unseen, total) in sorted(found.unseen_by_last_state.items()):
        if found.unseen:
            share = f"{unseen} of {total} ({unseen / total:.0%})"
            what = f"{_what(settings, UNSEEN)} or missing"
            if {NOT_PULLED, UNSEEN} & {*settings.outcomes.values()} == {NOT_PULLED}:
                what = "result missing"  # those with a word for none count as not made
            lines.append(f"{what}, of those last seen {settings.state_text(state)}: {share}")
    if found.approximate and found.unseen:
        lines.append(
            f"{words.many('pull')} whose result is missing are taken as not made until it comes"
        )
    lines += [told.text(words) for told in found.forgotten]
    if found.forget_after is not None:
        lines.append(said_of_memory(settings))
    if found.corrections:
        lines.append(f"corrections that wait for `restive live rebuild`: {found.corrections}")
    return lines + alarm_lines(found.alarms, path, words)


def _left(found: Status) -> str:
    """Name those who left last."""
    more = ", ..." if found.left > len(found.left_last) else ""
    return f"; {found.left:,} left: {', '.join(found.left_last)}{more}" if found.left else ""


def _parts(found: Status, settings: Settings) -> list[str]:
    """Say what came of all pulls: parts that add up."""
    late = [
        f"{count:,} {what}"
        for count, what in ((found.late, "late"), (found.superseded, "too late to be used"))
        if count
    ]
    unseen, not_made = found.unseen - found.missing - found.leaving, found.not_pulled
    if settings.outcome_text(UNSEEN) == settings.outcome_text(NOT_PULLED):
        unseen, not_made = 0, unseen + not_made
    parts = [
        (unseen, _what(settings, UNSEEN)),
        (found.leaving, settings.outcome_text(LEAVE)),
        (not_made, _what(settings, NOT_PULLED)),
        (found.missing, f"of earlier {settings.words.many('tick')} not here yet"),
        (found.waiting_pulls, "without a result yet"),
    ]
    seen = f"{found.seen:,} with a result" + (f" ({', '.join(late)})" if late else "")
    return [seen, *(f"{count:,} {what}" for count, what in parts if count)]


def _leaving(session: Session) -> int:
    """Count the pulls with whose result an arm left, and is gone."""
    memory = session.memory
    left = left_with(session.journal, memory.gone, memory.gone)
    pulls = {tick: pulls_of(session.journal, memory, tick) for tick in set(left.values())}
    told = (pulls[tick].get(slot) for slot, tick in left.items())
    return sum(one is not None and one.decided and one.status == UNSEEN for one in told)


def _what(settings: Settings, result: str) -> str:
    """What pulls without a state are called: the operators' own word, or ours."""
    if result in settings.outcomes.values():
        return settings.outcome_text(result)
    return {UNSEEN: "not reached", NOT_PULLED: "not made"}[result]


def alarm_lines(alarms: Sequence[Alarm], path: str, words: Words = PLAIN) -> list[str]:
    """Return open alarms, a line for each cause, and what answers them."""
    by_cause = causes(alarms)
    lines = [_of_cause(first, others, words) for first, *others in by_cause]
    for first, *others in by_cause:
        for alarm in (first, *others):
            if alarm.began and alarm.forgotten:
                lines.append(f"{alarm.seq}: {alarm.remedy(words)}")
            elif alarm.began:
                said = alarm.remedy(words)
                if alarm in others:
                    said = f"if only {alarm.of(words)} have changed for good"
                of = "--all" if alarm.kind is None else f"--kind {quote(alarm.kind)}"
                before = alarm.began_label or alarm.began
                how = f"restive live forget {quote(path)} {of} --before {before}"
                lines.append(f"{alarm.seq}: {said}: {how}")
    if alarms:
        numbers = " ".join(str(alarm.seq) for alarm in alarms)
        answer = f'restive live acknowledge {quote(path)} {numbers} --note "..."'
        lines.append(f"Once somebody has looked, say what was found: {answer}")
    return lines


def _of_cause(first: Alarm, others: Sequence[Alarm], words: Words) -> str:
    """Say all of an alarm, and name those that ring with it."""
    if not others:
        return first.text(words)
    numbers = f"{', '.join(str(one.seq) for one in (first, *others[:-1]))} and {others[-1].seq}"
    kinds = ", ".join(f"{one.seq}: of kind {one.kind!r} by itself, too" for one in others)
    said = f"{first.title(words)} ({kinds}), {first.since(words)}: {first.sentence}"
    return f"ALARM {numbers}, {said}"


# ---------------------------------------------------------------- rewards until now


def _audit_mean(memory: Memory, totals: Totals) -> float | None:
    rewards, found = memory.roster.rewards_by_group(), totals.audited
    count = sum(found.values())
    return sum(rewards[g][s] * n for (g, s), n in sorted(found.items())) / count if count else None


def rewards(session: Session) -> list[dict[str, Any]]:
    """Return reward and forecast of every decided tick.

    The forecast is of the pulls that were seen; mean and variance are those of all pulls.
    """
    found, label = session.summaries.rewards(session), session.memory.settings.clock.label
    return [
        {
            "tick": tick, "label": label(tick), "pulls": pulls, "seen": seen, "reward": reward,
            "forecast": forecast, "mean": None if isnan(mean) else mean,
            "variance": None if isnan(variance) else variance,
        }
        for tick, pulls, seen, reward, forecast, mean, variance in zip(
            *(column.tolist() for column in found), strict=True
        )
    ]  # fmt: skip


# ---------------------------------------------------------------- rewards that are possible


@dataclass(frozen=True)
class Headroom:
    """What is earned a tick, beside what could be if the model is right."""

    bound: float  # that no policy exceeds in the long run, were arms as they are on average
    earned: float | None  # in the last ticks, by pulls that were seen, as if all had been
    foreseen: float | None  # for the same pulls, when they were decided
    ticks: int  # how many these are


def headroom(session: Session) -> Headroom | None:
    """Compare what was earned with what could be; None where arms pay without being pulled."""
    memory = session.memory
    believed = _believed_arms(memory)
    if not believed or any(arm.pays_unpulled for arm, _ in believed):
        return None
    arms = [arm for arm, count in believed for _ in range(count)]
    pulls = min(memory.settings.num_pulls, len(arms))
    table = session.summaries.rewards(session)
    recent = np.flatnonzero((table.tick < memory.tick) & (table.seen > 0))[-RECENT:]
    seen = int(table.seen[recent].sum())
    return Headroom(
        bound=relaxation_bound(RestlessBandit(arms, pulls)),
        earned=pulls * sum(table.reward[recent].tolist()) / seen if seen else None,
        foreseen=pulls * sum(table.forecast[recent].tolist()) / seen if seen else None,
        ticks=len(recent),
    )


def _believed_arms(memory: Memory) -> list[tuple[Arm, int]]:
    """Return arms as they are believed to be on average, each with the number it stands for.

    Of many arms of a kind that were seen, evenly chosen ones stand for their neighbours.
    """
    slots: dict[tuple[str, bool], list[int]] = {}
    seen_by_now = memory.seen_by_now
    for slot in range(memory.num_joined):
        if slot not in memory.gone:
            key = memory.roster.kind_of[slot], slot in seen_by_now
            slots.setdefault(key, []).append(slot)
    found = []
    for (_, seen), there in slots.items():
        alike = not seen and memory.roster.joint is None  # so one of them stands for all
        step = len(there) if alike else -(-len(there) // MOST_LOOKED_AT)
        for first in range(0, len(there), step):
            mean = posterior(memory, there[first]).mean()
            like = memory.agent.prior.typical(there[first])
            arm = Arm(mean.active, mean.passive, like.rewards, like.passive_rewards, seen=like.seen)
            found.append((arm, len(there[first : first + step])))
    return found


# ---------------------------------------------------------------- rewards to come


@dataclass(frozen=True, eq=False)
class Forecast:
    """Rewards of the ticks to come: mean and 95% band of each, and of their sum.

    They are those of pulled arms, by choice or by the even draw of audit pulls. What arms pay while
    they are not pulled is not seen and not among them.
    """

    ticks: tuple[int, ...]
    mean: FloatArray  # [ticks]
    low: FloatArray  # [ticks]
    high: FloatArray  # [ticks]
    total: tuple[float, float, float]  # mean, low and high of the sum


def forecast(memory: Memory, ticks: int, paths: int, seed: int) -> Forecast:
    """Draw futures: what is seen comes from the belief, is learned from, and so on.

    Each future is one of the joint predictive law of all that will be seen: no chain needs to be
    drawn, and learning on the way is part of it. Where arms are seen in every tick, chains are
    drawn instead (`futures`).
    """
    ticks, paths = checked_count(ticks, "ticks"), checked_count(paths, "paths", 2)
    rng = np.random.default_rng(checked_seed(seed))
    if memory.roster.some_always_seen:
        futures = Futures(memory)
        rewards = np.array([futures.path(ticks, rng) for _ in range(paths)])
    else:
        snapshot = learned_data(memory.agent)
        task = load_snapshot(snapshot, None, memory.agent.prior).task
        rewards = np.array([_path(memory, snapshot, task, ticks, rng) for _ in range(paths)])
    low, high = np.quantile(rewards, [0.025, 0.975], axis=0)
    sums = rewards.sum(axis=1)
    ends = np.quantile(sums, [0.025, 0.975])
    return Forecast(
        ticks=tuple(range(memory.tick + 1, memory.tick + 1 + ticks)),
        mean=rewards.mean(axis=0),
        low=low,
        high=high,
        total=(float(sums.mean()), float(ends[0]), float(ends[1])),
    )


def _path(
    memory: Memory, snapshot: dict[str, Any], task: Task, ticks: int, rng: np.random.Generator
) -> FloatArray:
    agent = load_snapshot(snapshot, None, task=task)
    now = memory.open
    if now is not None:
        known = now.sightings
        arms = sorted({*now.choice.arms, *now.instead})
        agent.pull(arms)
        drop = {arm for arm, result in now.results.items() if isinstance(result, str)}
        seen = [arm for arm in arms if arm not in drop]
        states = [known[k] if k in known else _drawn(agent.belief(k), rng) for k in seen]
        agent.observe(np.array(states, dtype=np.int64), seen, missing="not pulled")
    count = min(memory.settings.num_pulls, agent.task.num_arms - len(memory.gone))
    earned = np.zeros(ticks)
    for i in range(ticks):
        chosen, _ = memory.picked(agent, memory.tick + 1 + i, count, [])
        states = [_drawn(agent.belief(k), rng) for k in chosen]
        facts = agent.task.facts.rewards
        earned[i] = sum(facts[k][s] for k, s in zip(chosen, states, strict=True))
        agent.observe(np.array(states, dtype=np.int64))
    return earned


def _drawn(law: FloatArray, rng: np.random.Generator) -> int:
    return min(int(np.searchsorted(np.cumsum(law), rng.random(), side="right")), len(law) - 1)
