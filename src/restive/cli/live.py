"""`restive live`: a durable agent that is run with CSV files."""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from contextlib import nullcontext
from dataclasses import asdict, replace
from datetime import datetime
from pathlib import Path
from shlex import quote
from typing import TYPE_CHECKING, Annotated, Any, NoReturn

import typer

from restive.cli.asking import go_on
from restive.cli.live_forgetting import forget, remember
from restive.cli.live_init import COMMAND_LINE, By, init
from restive.cli.live_people import come_back, join, leave
from restive.cli.live_places import (
    AsJson,
    File,
    backup,
    copy,
    last_part,
    list_agents,
    opened,
    tell_moved,
)
from restive.cli.live_results import (
    Date,
    Tick,
    change,
    correct,
    rebuild,
    record,
    tell_alarms,
    undo,
)
from restive.cli.progress import say, spinner
from restive.errors import JumpError, ProblemError

if TYPE_CHECKING:
    from restive.live.agent import LiveAgent
    from restive.live.told.answers import Decision

__all__ = ["live"]

MOST_DIGITS = 19  # of an alarm's number
MEANINGS = "no_answer=not-pulled,engaged=1"

live = typer.Typer(
    no_args_is_help=True,
    short_help="Run a programme for months, from one file that survives kills.",
    help="Run calls, visits or repairs for months from one file: a list of people each week, and "
    "what came of it. Help speaks of people, calls and weeks, with restive's own words in brackets "
    "(arms, pulls, ticks); once the file is made, it is spoken of in its own words.",
)

live.command()(init)


@live.command(name="next")
def next_(
    file: File,
    out: Annotated[
        Path | None, typer.Option(help="CSV file to write (default: to the terminal).")
    ] = None,
    tick: Tick = None,
    date: Date = None,
    pulls: Annotated[
        int | None, typer.Option(min=0, help="Another number of calls this time.")
    ] = None,
    unavailable: Annotated[
        Path | None, typer.Option(help="CSV file of people who cannot be called now: arm.")
    ] = None,
    wait_for: Annotated[
        str | None, typer.Option(help="Refuse unless this share of the last results is in: 90%.")
    ] = None,
    yes: Annotated[
        bool, typer.Option("--yes", help="Let weeks pass without a list, unasked.")
    ] = False,
    as_json: AsJson = False,
    by: By = COMMAND_LINE,
) -> None:
    """Write whom to call now (which arms to pull); asked again, the same list."""
    from restive.files import replacing, require_no_database
    from restive.live.people.operator_files import decision_text, require_nothing_new
    from restive.live.people.sheets import read_sheet

    if out is not None:
        if not out.parent.is_dir():
            raise ProblemError(
                f"{out}: cannot be written: there is no folder {str(out.parent)!r}; nothing was "
                "decided"
            )
        require_no_database(out)
    # a place that cannot be written is found before anything is decided
    with nullcontext() if out is None else replacing(out) as place, opened(file) as agent:
        words = agent.settings.words
        if out is not None:
            require_nothing_new(agent, out)
        out_of_order: list[str] = []
        if unavailable is not None:
            sheet = read_sheet(unavailable, words)
            sheet.require("arm")
            out_of_order = [row["arm"] for row in sheet.rows]
        before, results = agent.tick, agent.results()
        open_ = [name for name, result in results.items() if result == "open"]
        asked = agent.tick_asked(tick, date)
        if asked is None and agent.settings.clock.kind == "given":
            _say_which(agent, nothing_in=0 < len(results) == len(open_))
        if wait_for is not None and not _is_there(agent, asked, bool(open_)):
            _require_share(len(results), len(open_), wait_for)
        decision = _decided(
            agent, yes, tick=asked, num_pulls=pulls, unavailable=out_of_order, actor=by
        )
        _tell_what_passed(agent, before, open_, decision.tick)
        text = decision_text(agent, decision)
        if place is not None:
            place.write_text(text, encoding="utf-8", newline="")
        if as_json:
            print(json.dumps(asdict(decision), default=datetime.isoformat))
        elif out is None:
            print(text, end="")
        else:
            when = words.when(decision.tick, agent.settings.clock.label(decision.tick))
            count = len(decision.arms) - len(agent.uncalled(decision.tick))
            say(f"{out}: {words.count(count, 'arm')} for {when}")
        tell_alarms(agent.alarms(), file, words)


def _is_there(agent: LiveAgent, asked: int | None, some_open: bool) -> bool:
    """Whether the list that is asked for was made already."""
    if asked is not None:
        return asked == agent.tick
    if agent.settings.clock.kind == "calls":
        return some_open
    return agent.tick_of_arms == agent.tick


def _say_which(agent: LiveAgent, nothing_in: bool) -> NoReturn:
    """Ask for the tick of the list, by options that there are."""
    words, clock, last = agent.settings.words, agent.settings.clock, agent.tick
    which = f"say which {words.tick} the list is for: "
    if nothing_in:  # that list may be the one that is meant
        again = f"again {words.when(last)}: {clock.option(last)}; the next: "
        raise ProblemError(f"{which}{again}{clock.option(last + 1)}")
    by_date = f"{clock.option(last + 1)}, or " if clock.has_dates else ""
    raise ProblemError(f"{which}{by_date}--tick {last + 1}")


def _decided(agent: LiveAgent, yes: bool, **asked: Any) -> Decision:
    """Decide; ask first where more ticks would pass than was likely meant."""
    try:
        return agent.decide(skip=yes, **asked)
    except JumpError as error:
        if not go_on(error.jump):
            raise
        return agent.decide(skip=True, **asked)


def _tell_what_passed(agent: LiveAgent, before: int, open_: Sequence[str], tick: int) -> None:
    """Say on stderr what a new decision has closed."""
    from restive.arguments import counted
    from restive.live.told.missing import with_names

    if tick == before:
        return
    words = agent.settings.words
    last = words.when(before, agent.settings.clock.label(before))
    if before >= 0 and tick > before + 1:
        count = words.count(tick - before - 1, "tick")
        say(f"note: {count} passed without a list since {last}", sys.stderr)
    if open_:
        until = "it comes" if len(open_) == 1 else "they come"
        note = f"{counted(len(open_), 'result')} of {last} missing, taken as not reached until "
        say(f"note: {note}{until}{with_names(open_)}", sys.stderr)


live.command()(record)
live.command()(change)


@live.command()
def status(file: File, as_json: AsJson = False) -> None:
    """Tell where all stands, and whose results are missing; exit status 1 if there is an alarm."""
    from restive.live.told.how_long import forgetting_line
    from restive.live.told.missing import missing_lines
    from restive.logs.forgetting_words import forgetting_data

    with opened(file) as agent:
        found, settings, missing = agent.status(), agent.settings, missing_lines(agent)
        advice, moved = agent.advised_forgetting(), agent.moved_on()
    tell_moved(file, moved, sys.stderr if as_json else None)
    if as_json:
        unseen = found.unseen_by_last_state.items()
        named = {settings.state_name(state): counts for state, counts in unseen}
        told = {"unseen_by_last_state": named, "forgetting": forgetting_data(advice)}
        print(json.dumps(asdict(found) | told, indent=2))
    else:
        from restive.live.told.status import alarm_lines, status_lines

        lines = status_lines(replace(found, alarms=()), settings, file) + missing
        for line in lines + alarm_lines(found.alarms, file, settings.words):
            say(line)
        if line := forgetting_line(advice, settings, file):
            say(line)
    if found.alarms:
        raise typer.Exit(1)


@live.command()
def explain(
    file: File,
    arm: Annotated[
        str, typer.Argument(help="Whose place is to be explained, by name.", metavar="NAME")
    ],
    as_json: AsJson = False,
) -> None:
    """Tell why somebody is on the last list, or is not."""
    with opened(file) as agent:
        found = agent.explain(arm)
    if as_json:
        print(json.dumps(found.to_json()))
    else:
        for line in found.lines:
            say(line)


@live.command()
def acknowledge(
    file: File,
    alarms: Annotated[
        list[str], typer.Argument(metavar="ALARM...", help="Numbers of alarms, from `status`.")
    ],
    note: Annotated[str | None, typer.Option(help="What was found (required).")] = None,
    by: By = COMMAND_LINE,
) -> None:
    """Say that somebody has looked at alarms, and what was found."""
    with opened(file, to_write=True) as agent:
        if note is None:
            words = agent.settings.words
            raise ProblemError(
                f'say what was found: add --note "{words.many("pull")} of two {words.many("tick")} '
                'were written down wrongly"; nothing was changed'
            )
        there = [str(alarm.seq) for alarm in agent.alarms()]
        if not all(alarm.isdecimal() and len(alarm) < MOST_DIGITS for alarm in alarms):
            known = f"open {'is' if len(there) == 1 else 'are'} {' '.join(there) or 'none'}"
            raise ProblemError(
                f"give the numbers of alarms, from `restive live status {quote(file)}`: {known}; "
                "nothing was changed"
            )
        agent.acknowledge([int(alarm) for alarm in alarms], note, actor=by)
    for alarm in dict.fromkeys(map(int, alarms)):
        print(f"alarm {alarm} is answered; the watch begins anew")


for mending in (undo, correct, rebuild, join, leave, forget, remember):
    live.command()(mending)
live.command(name="return")(come_back)


@live.command()
def words(
    file: File,
    new: Annotated[
        str | None, typer.Argument(help="As arm=patient,pull=call; without it, all are printed.")
    ] = None,
    outcomes: Annotated[
        str | None,
        typer.Option(help="What results mean from now on: no_answer=not-pulled,engaged=1."),
    ] = None,
    by: By = COMMAND_LINE,
) -> None:
    """Show or change your nouns: on pages, in CSV headers, on the command line, in alarms.

    And what results mean. Those that were recorded stay as they are until they are corrected.
    """
    from restive.live.words import Words, pairs_of

    with opened(file) as agent:
        if new is not None or outcomes is not None:
            given = pairs_of(outcomes, "--outcomes", MEANINGS) if outcomes is not None else {}
            meant = {word: int(one) if one.isdecimal() else one for word, one in given.items()}
            agent.set_words({} if new is None else Words.from_text(new), meant, actor=by)
        now, meanings = agent.settings.words, agent.settings.meanings()
    for name in ("arm", "pull", "tick"):
        print(f"{name}: {getattr(now, name)}, {now.many(name)}")
    print(f"reward: {now.reward}")
    if meanings:
        say(f"results: {meanings}")
    if outcomes is not None:
        how = f"restive live correct {quote(file)} OLD.csv --note WHY"
        say(f"what was recorded stays until each file of it is corrected, then rebuilt: {how}")


@live.command()
def check(
    file: File,
    last_good: Annotated[
        Path | None, typer.Option(help="Write a copy that ends before the first damaged event.")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Check all of a file: that nobody has edited it, and that its lists follow from it.

    What somebody changed who computed all digests anew is found only if you have kept the last
    digest elsewhere.
    """
    from restive.live.checking import check as check_journal
    from restive.live.creating import write_good_part
    from restive.live.journal.events import Journal

    journal = Journal(file)
    try:
        if last_good is not None:
            seq = write_good_part(journal, last_good)
            print(json.dumps({"good": seq}) if as_json else f"{last_good}: events 1 to {seq:,}")
            return
        with spinner(f"checking {last_part(file)}") as show, journal.reading():
            count, digest = check_journal(journal, lambda done, total: show("events", done, total))
    finally:
        journal.close()
    if as_json:
        print(json.dumps({"events": count, "digest": digest}))
    else:
        print(f"{file}: {count:,} events, all good; the last has digest {digest[:16]}")


@live.command()
def export(
    file: File,
    out: Annotated[
        Path | None, typer.Option(help="New file: .csv, .jsonl or .parquet (required).")
    ] = None,
    table: Annotated[str, typer.Option(help="pulls, events, arms or beliefs.")] = "pulls",
) -> None:
    """Write a table: pulls (calls), events (all that was done), arms (people), or beliefs."""
    from restive.live.told.listing import export_table

    if out is None:
        raise ProblemError(f"say which file to write: add --out {table}.csv")
    with opened(file) as agent, spinner(f"exporting {table}") as show:
        count = export_table(agent, table, out, lambda done, total: show("rows", done, total))
    print(f"{out}: {count:,} rows")


@live.command()
def token(
    file: File,
    name: Annotated[
        str | None, typer.Argument(help="Whose it is; without a name, all are listed.")
    ] = None,
    role: Annotated[str, typer.Option(help="read, act or admin.")] = "act",
    days: Annotated[float | None, typer.Option(help="After which it ends.")] = None,
    remove: Annotated[bool, typer.Option("--remove", help="Remove it.")] = False,
    by: By = COMMAND_LINE,
) -> None:
    """Let a client of `restive serve` in: prints its secret, once."""
    from restive.live.clock import utc_time

    with opened(file) as agent:
        if name is None:
            for one in agent.tokens():
                ends = "" if one.ends is None else f", ends {utc_time(one.ends):%Y-%m-%d %H:%M} UTC"
                print(f"{one.name}: {one.role}{ends}")
        elif remove:
            agent.remove_token(name, actor=by)
        else:
            print(agent.make_token(name, role, days, actor=by))


live.command()(backup)
live.command()(copy)
live.command(name="list")(list_agents)


def _require_share(decided: int, open_: int, share: str) -> None:
    try:
        least = float(share.removesuffix("%")) / 100
    except ValueError:
        raise ProblemError(f"--wait-for must be a share such as 90%, got {share!r:.40}") from None
    if decided and (decided - open_) / decided < least:
        raise ProblemError(
            f"{decided - open_} of {decided} results are in, fewer than {share}; record more, or "
            "leave out --wait-for"
        )
