"""Files that operators exchange with a live agent: who the arms are, decisions, results.

A results file is one request: the same file twice is harmless.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from os import PathLike
from pathlib import Path
from typing import Any

from restive.arguments import counted, shown
from restive.errors import ProblemError
from restive.learn.learners import LEARNERS
from restive.learn.priors.finite import ArmPrior
from restive.learn.priors.independent import grid_prior
from restive.learn.priors.spread import spread_candidates
from restive.live.acts.recording import Batch
from restive.live.agent import LiveAgent
from restive.live.clock import NAMED, Clock
from restive.live.creating import create_file
from restive.live.journal.events import Event
from restive.live.people.arm_files import arms_of_sheet, whole
from restive.live.people.prior_arms import arm_of_prior_file, ticks_since_log
from restive.live.people.roster import ALL, NewArm
from restive.live.people.sheets import Sheet, listed, read_sheet, sheet_text
from restive.live.session import OURS
from restive.live.settings import AS_NOT_PULLED, Settings, learner_table
from restive.live.told.answers import Decision, Receipt, RefusedError
from restive.live.words import Words
from restive.logs.prior_file import load_prior
from restive.problem.toml_text import parse_toml, read_text

__all__ = [
    "AssumedWorld",
    "Recorded",
    "create_from_files",
    "decision_text",
    "parsed_results",
    "record_sheet",
]

MOST_PULLS, MOST_TICKS = 50, 4  # that are looked at, and named, where no tick was said
OUTCOME = "outcome"
DECISION = ("tick", "date", "arm", "kind", "expected", "index", "audit", OUTCOME)


# ---------------------------------------------------------------- a new agent, and its arms


@dataclass(frozen=True)
class AssumedWorld:
    """What is assumed of arms of which nothing is known yet."""

    states: tuple[str, ...] = ()  # the worst first
    controlled: bool = False  # whether a pull changes how an arm moves
    always: bool = False  # whether arms pay in every tick, and not only when pulled
    helpful: bool = False  # whether a pull never makes an arm worse


def create_from_files(
    path: str | PathLike[str],
    prior: Path | None,
    levels: str | None,
    arms: Path | None,
    settings_file: Path | None,
    options: dict[str, Any],
    clock_options: dict[str, Any],
    world: AssumedWorld,
    actor: str,
) -> tuple[LiveAgent, int | None, list[str]]:
    """Make the file of a new agent from files and options of `restive live init`; open it.

    With neither a prior nor levels, arms of a kind may be anything at first, as `world` says, and
    what they are like is learnt from all of them. Also return the ticks from the end of the prior's
    log to the first tick, where they are known, and the kinds that the prior does not have: such
    arms begin as any arm of the prior may be.
    """
    more = {} if settings_file is None else _settings(settings_file)
    given = {key: value for key, value in options.items() if value is not None}
    words = {**more.pop("words", {}), **given.pop("words", {})}
    sheet = None if arms is None else read_sheet(arms, Words.from_data(words))
    rows = [] if sheet is None else sheet.rows
    named = sorted({row.get("kind", "") for row in rows} - {""})
    beyond: list[str] = []
    clock = _clock(**clock_options)
    known: dict[str, NewArm] = {}
    states: tuple[str, ...] = ()
    since: int | None = None
    if prior is not None and levels is None:
        found = load_prior(prior)
        kinds: dict[str, Any] = dict(found.kinds)
        states = found.states
        if any(kind in kinds for kind in named):  # else the column may mean something else
            beyond = [kind for kind in named if kind not in kinds]
            kinds |= {kind: found.any_kind() for kind in beyond}
        if world.states and world.states != states:
            raise ProblemError(
                f"{prior} is of arms with the states {', '.join(states)}, and --states says "
                f"{', '.join(world.states)}: leave --states out, or fit the log with these"
            )
        since = ticks_since_log(found, clock)
        known = {name: arm_of_prior_file(found, k, since) for k, name in enumerate(found.names)}
        if any(isinstance(one, ArmPrior) and not one.moves_alike for one in kinds.values()):
            given["learner"] = _few_looks(given.get("learner"))
    elif levels is not None and prior is None:
        kinds = {ALL: grid_prior(_levels(levels), 1).arms[0]}
    elif prior is None and world.states:
        kinds, states = _kinds_to_learn(named, world), world.states
        given["learner"] = _few_looks(given.get("learner"))
        if world.controlled:
            given.setdefault("missing", AS_NOT_PULLED)
    else:
        raise ProblemError(
            "say what is known: --prior FILE, as `restive fit` writes it; or, to learn as you go, "
            "--states with the names of the states, the worst first: --states missed,taken"
        )
    if any(not one.moves_alike for one in kinds.values()):
        given.setdefault("rest", 1)
    data = {"clock": clock.to_data(), "states": list(states), **given, **more}
    settings = Settings.from_data(data | ({"words": words} if words else {}))
    new = list(known.values())
    if sheet is not None:
        new = arms_of_sheet(sheet, list(kinds), settings, 0, known)
    if not new:
        word = settings.words
        if arms is not None:
            raise ProblemError(f"{arms}: there is a header and no row below it")
        raise ProblemError(
            f"who are the {word.many('arm')}? pass --arms FILE, with a column {word.arm!r}"
        )
    if settings.num_pulls > len(new):
        word = settings.words
        raise ProblemError(
            f"{word.count(settings.num_pulls, 'pull')} a {word.tick} are more than there are "
            f"{word.many('arm')}, {len(new):,}; nothing was made"
        )
    create_file(path, settings, kinds, new, actor)
    return LiveAgent.open(path), since, beyond


def _few_looks(given: str | None) -> dict[str, Any]:
    """Return the learner for laws of any shape, which are learnt on where it can: `learn.kinds`."""
    found = learner_table("mean_index" if given is None else given)
    learns = hasattr(LEARNERS.get(found["name"]), "learn_kinds")
    return ({"learn_kinds": "epochs"} if learns else {}) | found


def words_of(settings_file: Path | None, given: Mapping[str, str] | None) -> Words:
    """Return the words of a new file: those that were given come before those of its settings."""
    own = {} if settings_file is None else _settings(settings_file).get("words", {})
    return Words.from_data(own | dict(given or {}))


def _kinds_to_learn(named: Sequence[str], world: AssumedWorld) -> dict[str, Any]:
    """Return kinds of which nothing is known, as many as the arms' file has."""
    if len(world.states) < 2:
        raise ProblemError("--states needs two names or more, the worst first: missed,taken")
    rewards = [state / (len(world.states) - 1) for state in range(len(world.states))]
    base = spread_candidates(
        rewards, rewards if world.always else None, world.states, controlled=world.controlled,
        helpful=world.controlled and world.helpful,
    )  # fmt: skip
    # a law each, over the same candidates
    return {name: base.with_weights(base.weights) for name in named or [ALL]}


def _clock(clock: str, start: str | None, zone: str, by_hand: bool) -> Clock:
    if clock in ("calls", "given"):
        if start is not None:
            raise ProblemError(f"a clock of {clock} has no start; say --clock weekly, or P7D")
        return Clock.calls() if clock == "calls" else Clock.given()
    if start is None:
        raise ProblemError(f"when does the first step of clock {shown(clock)} begin? pass --start")
    make = Clock.given if by_hand else Clock.wall
    return make(start, NAMED.get(clock, clock), zone)


def _levels(text: str) -> list[float]:
    try:
        return [float(part) for part in text.split(",")]
    except ValueError:
        raise ProblemError(f"--levels must be numbers by commas, got {shown(text)}") from None


def _settings(path: Path) -> dict[str, Any]:
    text = read_text(path)
    try:
        data = parse_toml(text)
        if "num_pulls" in data or "clock" in data:
            raise ProblemError("pulls and clock are options of `restive live init`")
        Settings.from_data({"num_pulls": 1, **data})
        return data
    except ProblemError as error:
        raise ProblemError(f"{path}: {error}") from None


# ---------------------------------------------------------------- decisions


def require_nothing_new(live: LiveAgent, path: Path) -> None:
    """Raise if a list would replace a file that has outcomes, or notes to them, of its own."""
    if not path.is_file() or not path.stat().st_size:
        return
    instead = "give the list another name"
    try:
        sheet = read_sheet(path, live.settings.words)
    except ProblemError as error:  # it may be a list that a spreadsheet has saved in its own way
        raise ProblemError(f"{error}; or {instead}; nothing was decided") from None
    filled = sum(bool(row.get(OUTCOME)) for row in sheet.rows)
    if not filled:
        return
    what = f"{path}: has {counted(filled, 'outcome')} filled in, "
    own = [one for one in sheet.columns if one not in DECISION and any(r[one] for r in sheet.rows)]
    if _adds(live, sheet):
        how = f"{what}of which some are not recorded: record this file first, or {instead}"
        raise ProblemError(f"{how}; nothing was decided")
    if own:
        how = f"{what}and a column {own[0]!r}, which would be lost: {instead}"
        raise ProblemError(f"{how}; nothing was decided")


def _adds(live: LiveAgent, sheet: Sheet) -> bool:
    """Whether a file has outcomes that are not recorded."""
    try:
        rows, wrong = _parsed(live.settings, sheet, None)
        batches = _batches(live, _rows_of(rows, live.tick), pulled_instead=False)
        return bool(wrong or live.adds(batches) or live.mistakes(batches))
    except ProblemError:
        return True


def decision_text(live: LiveAgent, decision: Decision) -> str:
    """Write a decision as CSV: outcomes that are in, room for others, and nobody who has left."""
    label, audit = live.settings.clock.label(decision.tick), set(decision.audit)
    words, kinds = live.outcome_words(decision.tick), live.kinds_of(decision.arms)
    away = live.uncalled(decision.tick)
    rows = [
        (decision.tick, label, arm, kind, f"{mean:.6f}", "" if i is None else f"{i:.6f}",
         int(arm in audit), words.get(arm, ""))
        for arm, kind, mean, i in zip(
            decision.arms, kinds, decision.expected, decision.index, strict=True
        )
        if arm not in away
    ]  # fmt: skip
    return sheet_text([live.settings.words.column(name) for name in DECISION], rows)


# ---------------------------------------------------------------- results


@dataclass(frozen=True)
class Recorded:
    """What became of a results file."""

    receipt: Receipt
    repeated: int | None  # the tick for which this very file was recorded before
    rejected: tuple[tuple[int, str, str], ...]  # line, arm and reason


def record_sheet(
    live: LiveAgent,
    sheet: Sheet,
    tick: int | None = None,
    *,
    accept_good: bool = False,
    pulled_instead: bool = False,
    actor: str = "file",
) -> Recorded:
    """Record a results file: arm, state or outcome, and tick or date where it is not the open one.

    All or nothing, unless `accept_good` takes the rows that can be taken.

    Parameters
    ----------
    live, sheet
        The agent and the file.
    tick
        Of all rows. The file may say it, and must not say another.
    accept_good
        Take the rows that can be taken.
    pulled_instead
        Arms that were not decided were pulled by somebody's own choice.
    actor
        Who does this, for the journal.
    """
    read, wrong = _parsed(live.settings, sheet, tick)
    last, by_tick = live.tick, any(at is None for _, at, _, _ in read)
    # said once: the tick may be another when it is recorded
    rows = _rows_of(read, last) if by_tick and last >= 0 else read
    # the same bytes are the same request only for the same tick, and if they are read alike
    own = f"{OURS}file {sheet.digest}"
    request = own + (f" tick {last}" if by_tick else "" if tick is None else f" tick {tick}")
    request += " good" * accept_good + " instead" * pulled_instead
    batches = _batches(live, rows, pulled_instead)
    while (before := live.request(request)) is not None and live.adds(batches):
        request += f" after {before.seq}"  # what it told of was withdrawn: it is a file like any
    lines = {(at, arm): line for line, at, arm, _ in reversed(rows)}
    if wrong and not accept_good and before is None:
        wrong += _with_lines(live.mistakes(batches), lines)
        raise ProblemError(listed(sheet, sorted(wrong), "nothing was recorded"))
    earlier = _earlier(live, own, last) if before is None and by_tick else None
    if earlier is not None and live.mistakes(batches):  # it is last week's file, sent again
        its_own = _batches(live, _rows_of(read, earlier.tick), pulled_instead)
        if not live.adds(its_own):
            return Recorded(Receipt(**earlier.body["answer"]["receipt"]), earlier.tick, ())
    try:
        receipt, mistakes = live.record_batches(
            batches, accept_good=accept_good, request=request, of_file=True, actor=actor
        )
    except RefusedError as error:
        found = sorted(_with_lines(error.mistakes, lines))
        text = listed(sheet, found, "nothing was recorded")
        raise RefusedError(error.mistakes, text) from None
    rejected = tuple(sorted(wrong + _with_lines(mistakes, lines)))
    return Recorded(receipt, None, rejected) if before is None else (
        Recorded(receipt, before.tick, ())
    )  # fmt: skip


def _earlier(live: LiveAgent, own: str, tick: int) -> Event | None:
    """Return the last event by which this very file was recorded for another tick."""
    found = [
        event
        for event in live.requests_like(own)
        if event.tick != tick and "receipt" in event.body["answer"]
    ]
    return found[-1] if found else None


ParsedRow = tuple[int, int | None, str, int | str]


def _rows_of(rows: Sequence[ParsedRow], tick: int) -> list[ParsedRow]:
    """Return rows with this tick where they say none."""
    return [(line, tick if at is None else at, arm, result) for line, at, arm, result in rows]


def _parsed(
    settings: Settings, sheet: Sheet, tick: int | None
) -> tuple[list[ParsedRow], list[tuple[int, str, str]]]:
    """Return line, tick, arm and result of each row, and the rows that cannot be read."""
    word = "state" if "state" in sheet.columns and OUTCOME not in sheet.columns else OUTCOME
    sheet.require("arm", word)
    rows: list[ParsedRow] = []
    wrong: list[tuple[int, str, str]] = []
    said: dict[tuple[int | None, str], set[int | str]] = {}
    for line, row in zip(sheet.lines, sheet.rows, strict=True):
        try:
            at = _tick_of_row(settings, row, tick)
            if not row[word]:
                continue  # nothing is known yet
            result = settings.result_of(row[word])
            said.setdefault((at, row["arm"]), set()).add(result)
            rows.append((line, at, row["arm"], result))
        except ProblemError as error:
            wrong.append((line, row["arm"], str(error)))
    # which of two results is right nobody can tell: none of them is taken
    twice = [one for one in rows if len(said[one[1], one[2]]) > 1]
    wrong += [(line, arm, "is there twice, with another result") for line, _, arm, _ in twice]
    return [one for one in rows if one not in twice], sorted(wrong)


def _tick_of_row(settings: Settings, row: Mapping[str, str], tick: int | None) -> int | None:
    """Return the tick of a row by its number, or by its date: that of `tick`, if one was asked."""
    clock, words, at = settings.clock, settings.words, _tick_told(settings, row)
    if at is None or tick is None:
        return tick if at is None else at
    if at != tick:
        other, asked = (words.when(which, clock.label(which)) for which in (at, tick))
        raise ProblemError(f"says {other}, but {asked} was asked for")
    return at


def _tick_told(settings: Settings, row: Mapping[str, str]) -> int | None:
    """Return the tick that a row tells, by its number or by its date; None if by neither."""
    clock, words, date = settings.clock, settings.words, row.get("date")
    if not row.get("tick"):
        try:
            return clock.tick_of(date) if date else None
        except ProblemError as error:
            column = words.column("tick")
            raise ProblemError(
                f"{error}; where a column {column!r} has the number, no date is needed"
            ) from None
    at = whole(row["tick"], words.tick)
    try:
        dated = clock.tick_of(date) if date and clock.has_dates else at
    except ProblemError:  # as a spreadsheet has written it; the number says it all
        return at
    if dated != at:
        raise ProblemError(
            f"says {words.when(at, clock.label(at))}, but its date {date} is of "
            f"{words.when(dated)}: correct what is wrong"
        )
    return at


def parsed_results(
    live: LiveAgent, sheet: Sheet, tick: int | None = None
) -> tuple[dict[str, Any], int]:
    """Return the results of a file by arm, and of which one tick they are; or raise."""
    rows, wrong = _parsed(live.settings, sheet, tick)
    if wrong:
        raise ProblemError(listed(sheet, wrong, "nothing was changed"))
    clock, words = live.settings.clock, live.settings.words
    ticks = sorted({at for _, at, _, _ in rows if at is not None})
    if len(ticks) > 1:
        raise ProblemError(
            f"{sheet.name}: has results of {len(ticks)} {words.many('tick')}; correct one "
            f"{words.tick} at a time; nothing was changed"
        )
    if tick is None and (not ticks or any(at is None for _, at, _, _ in rows)):
        arms = {arm for _, _, arm, _ in rows}
        which = [f"{clock.option(at)} ({words.when(at)})" for at in _pulled_in(live, arms)]
        how = ", or ".join(which) or ("--date" if clock.has_dates else "--tick")
        raise ProblemError(
            f"{sheet.name}: say of which {words.tick} these results are: {how}, or a column "
            f"{words.column('tick')!r}; nothing was changed"
        )
    return {arm: result for _, _, arm, result in rows}, ticks[0] if tick is None else tick


def _pulled_in(live: LiveAgent, arms: Iterable[str]) -> list[int]:
    """Return the last ticks in which all of these were pulled, or else some; the newest first."""
    by_arm = [{row["tick"] for row in live.history(arm, MOST_PULLS)} for arm in arms]
    all_of_them = set.intersection(*by_arm) if by_arm else set()
    return sorted(all_of_them or set().union(*by_arm), reverse=True)[:MOST_TICKS]


def _batches(live: LiveAgent, rows: Sequence[ParsedRow], pulled_instead: bool) -> list[Batch]:
    by_tick: dict[int | None, tuple[dict[str, Any], dict[str, Any]]] = {}
    for _, at, arm, result in rows:
        by_tick.setdefault(at, ({}, {}))[0][arm] = result
    if pulled_instead:
        for at, (results, instead) in by_tick.items():
            decision = live.decision(at)
            there = set() if decision is None else set(decision.arms)
            for arm in [name for name in results if name not in there]:
                instead[arm] = results.pop(arm)
    return [Batch(at, results, instead) for at, (results, instead) in by_tick.items()]


def _with_lines(
    mistakes: Iterable[Any], lines: Mapping[tuple[int | None, str], int]
) -> list[tuple[int, str, str]]:
    """Give mistakes their lines."""
    return [
        (lines.get((m.tick, m.arm), lines.get((None, m.arm), 0)), m.arm, m.reason) for m in mistakes
    ]
