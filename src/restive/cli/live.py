"""`restive live`: a durable agent that is run with CSV files."""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from contextlib import nullcontext
from dataclasses import asdict
from datetime import datetime
from pathlib import Path
from shlex import quote
from typing import TYPE_CHECKING, Annotated, Any

import typer

from restive.cli.live_forgetting import forget, remember
from restive.cli.live_init import COMMAND_LINE, By, init
from restive.cli.live_places import (
    AsJson,
    File,
    backup,
    checked_place,
    copy,
    list_agents,
    opened,
    short,
)
from restive.cli.progress import say, spinner
from restive.errors import JumpError, ProblemError

if TYPE_CHECKING:
    from restive.live.agent import LiveAgent
    from restive.live.answers import Alarm, Decision
    from restive.live.words import Words

__all__ = ["live"]

live = typer.Typer(
    no_args_is_help=True,
    help="Run an agent for months, from one file that survives kills.",
)

live.command()(init)
live.command(name="list")(list_agents)
live.command()(copy)
live.command()(backup)
live.command()(forget)
live.command()(remember)


@live.command(name="next")
def next_(
    file: File,
    out: Annotated[
        Path | None, typer.Option(help="CSV file to write (default: to the terminal).")
    ] = None,
    tick: Annotated[int | None, typer.Option(min=0, help="Which tick, if it is given.")] = None,
    date: Annotated[str | None, typer.Option(help="Its date instead.")] = None,
    pulls: Annotated[int | None, typer.Option(min=0, help="Another number this time.")] = None,
    unavailable: Annotated[
        Path | None, typer.Option(help="CSV file of arms that cannot be pulled now.")
    ] = None,
    wait_for: Annotated[
        str | None, typer.Option(help="Refuse unless this share of the last results is in: 90%.")
    ] = None,
    yes: Annotated[
        bool, typer.Option("--yes", help="Let ticks pass without a decision, unasked.")
    ] = False,
    as_json: AsJson = False,
    by: By = COMMAND_LINE,
) -> None:
    """Write which arms to pull now; asked again, the same."""
    from restive.files import replacing, require_no_database
    from restive.live.operator_files import decision_text, require_no_outcomes
    from restive.live.sheets import read_sheet

    if out is not None:
        require_no_database(out)
    # a place that cannot be written is found before anything is decided
    with nullcontext() if out is None else replacing(out) as place, opened(file) as agent:
        words = agent.settings.words
        if out is not None:
            require_no_outcomes(out, words)
        out_of_order: list[str] = []
        if unavailable is not None:
            sheet = read_sheet(unavailable, words)
            sheet.require("arm")
            out_of_order = [row["arm"] for row in sheet.rows]
        before, open_ = agent.tick, list(agent.results().values()).count("open")
        if wait_for is not None:
            _require_share(len(agent.results()), open_, wait_for)
        decision = _decided(
            agent, yes, tick=agent.tick_asked(tick, date), num_pulls=pulls,
            unavailable=out_of_order, actor=by,
        )  # fmt: skip
        _tell_what_passed(agent, before, open_, decision.tick)
        text = decision_text(agent, decision)
        if place is not None:
            place.write_text(text, encoding="utf-8", newline="")
        if as_json:
            print(json.dumps(asdict(decision), default=datetime.isoformat))
        elif out is None:
            print(text, end="")
        else:
            count, label = (
                words.count(len(decision.arms), "arm"),
                agent.settings.clock.label(decision.tick),
            )
            say(f"{out}: {count} for {words.when(decision.tick, label)}")
        _tell_alarms(agent.alarms(), file, words)


def _decided(agent: LiveAgent, yes: bool, **asked: Any) -> Decision:
    """Decide; ask first where more ticks would pass than was likely meant."""
    try:
        return agent.decide(skip=yes, **asked)
    except JumpError as error:
        if not _asked(error.jump):
            raise
        return agent.decide(skip=True, **asked)


def _asked(what: str) -> bool:
    """Ask whether something is meant; False where nobody can be asked. A no ends the command."""
    if not (sys.stdin.isatty() and sys.stderr.isatty()):
        return False
    print(f"{what}. Go on? [y/N] ", end="", file=sys.stderr, flush=True)
    if sys.stdin.readline().strip().lower() not in ("y", "yes"):
        print("nothing was changed", file=sys.stderr)
        raise typer.Exit(1)
    return True


def _tell_what_passed(agent: LiveAgent, before: int, open_: int, tick: int) -> None:
    """Say on stderr what a new decision has closed."""
    from restive.arguments import counted

    if tick == before:
        return
    words = agent.settings.words
    last = words.when(before, agent.settings.clock.label(before))
    if before >= 0 and tick > before + 1:
        count = words.count(tick - before - 1, "tick")
        say(f"note: {count} passed without a list since {last}", sys.stderr)
    if open_:
        note = f"{counted(open_, 'result')} of {last} missing: taken as not reached until they come"
        say(f"note: {note}", sys.stderr)


def _tell_alarms(alarms: Sequence[Alarm], file: str, words: Words) -> None:
    """Print open alarms on stderr, where they do not mix with what was asked for."""
    from restive.live.status import alarm_lines

    for line in alarm_lines(alarms, file, words):
        say(line, sys.stderr)


@live.command()
def undo(
    file: File,
    event: Annotated[
        int | None, typer.Option(min=1, help="The event that is meant: refuse any other.")
    ] = None,
    yes: Annotated[bool, typer.Option("--yes", help="Do not ask.")] = False,
    as_json: AsJson = False,
    by: By = COMMAND_LINE,
) -> None:
    """Withdraw the last decision, results or other act, as if it had never happened."""
    with opened(file) as agent:
        act, words = agent.last_act(), agent.settings.words
        if act is not None and not yes and event in (None, act.event):
            what = act.text(words)
            if not _asked(f"this withdraws {what}"):
                raise ProblemError(f"this would withdraw {what}; say --yes if that is meant")
            event = act.event  # and not what somebody did meanwhile
        done = agent.undo(event, actor=by)
        if as_json:
            print(json.dumps(asdict(done)))
        else:
            lost = "; throw its list away" if done.kind in ("decide", "step") else ""
            say(f"withdrawn: {done.text(words)}{lost}")
        _tell_alarms(agent.alarms(), file, words)


@live.command()
def record(
    file: File,
    results: Annotated[
        Path, typer.Argument(metavar="RESULTS", help="CSV file: arm, state or outcome, tick.")
    ],
    tick: Annotated[int | None, typer.Option(min=0, help="Of rows that do not say.")] = None,
    date: Annotated[str | None, typer.Option(help="Its date instead.")] = None,
    accept_good: Annotated[
        bool, typer.Option("--accept-good", help="Take good rows; write the others to a file.")
    ] = False,
    pulled_instead: Annotated[
        bool, typer.Option("--pulled-instead", help="Other arms were pulled by one's own choice.")
    ] = False,
    as_json: AsJson = False,
    by: By = COMMAND_LINE,
) -> None:
    """Record results; the same file twice is harmless."""
    from restive.arguments import counted
    from restive.live.operator_files import record_sheet, rejected_text
    from restive.live.sheets import read_sheet, write_text

    with opened(file) as agent:
        words, before = agent.settings.words, agent.num_arms
        sheet = read_sheet(results, words)
        done = record_sheet(
            agent, sheet, agent.tick_asked(tick, date), accept_good=accept_good,
            pulled_instead=pulled_instead, actor=by,
        )  # fmt: skip
        missing = list(agent.results().values()).count("open")
        left = before - agent.num_arms
        alarms = agent.alarms()
    if done.rejected:
        rejected = results.with_name(f"{results.stem}.rejected.csv")
        write_text(rejected, rejected_text(sheet, done.rejected))
        count = counted(len(done.rejected), "row")
        say(f"note: {count} not taken, written to {rejected}", sys.stderr)
    if as_json:
        data = {"repeated": done.repeated, "rejected": done.rejected, **asdict(done.receipt)}
        print(json.dumps(data))
    elif done.repeated is not None:
        total = done.receipt.new + done.receipt.known + done.receipt.late + done.receipt.superseded
        when = words.when(done.repeated)
        print(f"{counted(total, 'result')} known already: this very file was recorded ({when})")
    else:
        said = done.receipt.text(words)
        if not sheet.has_results:
            said = f"{results}: no outcome is filled in, so nothing was recorded"
        said += f"; {words.count(left, 'arm')} left for ever" if left else ""
        said += f"; {missing:,} still missing" if missing and done.receipt.new else ""
        say(said)
    _tell_alarms(alarms, file, words)


@live.command()
def join(file: File, arms: Path, as_json: AsJson = False, by: By = COMMAND_LINE) -> None:
    """Let the arms of a CSV file join: arm, kind, last_state, last_seen or elapsed."""
    from restive.live.operator_files import arms_of_sheet
    from restive.live.sheets import read_sheet

    with opened(file) as agent:
        words = agent.settings.words
        sheet = read_sheet(arms, words)
        new = arms_of_sheet(sheet, agent.kinds, agent.settings, agent.tick_of_arms, {})
        receipt = agent.join(
            {arm.name: arm.kind for arm in new},
            {a.name: (a.last_state, a.elapsed) for a in new if a.last_state is not None},
            actor=by,
        )
    print(json.dumps(asdict(receipt)) if as_json else receipt.text_of_arms("joined", words))


@live.command()
def leave(file: File, arms: Path, as_json: AsJson = False, by: By = COMMAND_LINE) -> None:
    """Let the arms of a CSV file leave for ever."""
    from restive.live.sheets import read_sheet

    with opened(file) as agent:
        words = agent.settings.words
        sheet = read_sheet(arms, words)
        sheet.require("arm")
        receipt = agent.leave([row["arm"] for row in sheet.rows], actor=by)
    if as_json:
        print(json.dumps(asdict(receipt)))
        return
    back = f"; if that was not meant: restive live undo {quote(file)}" if receipt.new > 1 else ""
    say(receipt.text_of_arms("left", words) + back)


@live.command()
def status(file: File, as_json: AsJson = False) -> None:
    """Tell where an agent stands; exit status 1 if there is an alarm."""
    from restive.live.remembering import memory_line
    from restive.logs.memory_words import memory_data

    with opened(file) as agent:
        found, settings, memory = agent.status(), agent.settings, agent.advised_memory()
    if as_json:
        unseen = found.unseen_by_last_state.items()
        named = {settings.state_name(state): counts for state, counts in unseen}
        told = {"unseen_by_last_state": named, "memory": memory_data(memory)}
        print(json.dumps(asdict(found) | told, indent=2))
    else:
        from restive.live.status import status_lines

        for line in status_lines(found, settings, file):
            say(line)
        if line := memory_line(memory, settings, file):
            say(line)
    if found.alarms:
        raise typer.Exit(1)


@live.command()
def words(
    file: File,
    new: Annotated[
        str | None, typer.Argument(help="As arm=patient,pull=call; without it, all are printed.")
    ] = None,
    by: By = COMMAND_LINE,
) -> None:
    """Show or change your nouns: on pages, in CSV headers, on the command line, in alarms."""
    from restive.live.words import Words

    with opened(file) as agent:
        if new is not None:
            agent.set_words(Words.from_text(new), actor=by)
        now = agent.settings.words
    for name in ("arm", "pull", "tick"):
        print(f"{name}: {getattr(now, name)}, {now.many(name)}")
    print(f"reward: {now.reward}")


@live.command()
def explain(
    file: File,
    arm: Annotated[str, typer.Argument(help="Whose place is to be explained, by name.")],
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
    alarm: Annotated[int, typer.Argument(help="The alarm's number, from `status`.")],
    note: Annotated[str, typer.Option(help="What was found.")],
    by: By = COMMAND_LINE,
) -> None:
    """Say that somebody has looked at an alarm."""
    with opened(file) as agent:
        agent.acknowledge(alarm, note, actor=by)
    print(f"alarm {alarm} is answered; the watch begins anew")


@live.command()
def check(
    file: File,
    last_good: Annotated[
        Path | None, typer.Option(help="Write a copy that ends with the last good event.")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Check all of a file: digests, tables, and the decisions that the events lead to.

    What somebody changed who computed all digests anew is found only if you have kept the last
    digest elsewhere.
    """
    from restive.live.checking import check as check_journal
    from restive.live.creating import write_good_part
    from restive.live.journal import Journal

    journal = Journal(file)
    try:
        if last_good is not None:
            seq = write_good_part(journal, last_good)
            print(json.dumps({"good": seq}) if as_json else f"{last_good}: events 1 to {seq:,}")
            return
        with spinner(f"checking {short(file)}") as show, journal.reading():
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
    out: Annotated[Path, typer.Option(help="New file: .csv, .jsonl or .parquet.")],
    table: Annotated[str, typer.Option(help="pulls, events, arms or beliefs.")] = "pulls",
) -> None:
    """Write a table of an agent's file."""
    from restive.live.operator_files import export_table

    with opened(file) as agent, spinner(f"exporting {table}") as show:
        count = export_table(agent, table, out, lambda done, total: show("rows", done, total))
    print(f"{out}: {count:,} rows")


@live.command()
def correct(
    file: File,
    results: Annotated[Path, typer.Argument(help="CSV file: arm, state or outcome.")],
    tick: Annotated[int, typer.Option(min=0, help="Of which tick.")],
    note: Annotated[str, typer.Option(help="Why.")],
    by: By = COMMAND_LINE,
) -> None:
    """Note that results were recorded wrongly; `rebuild` makes a file that knows better."""
    from restive.arguments import counted
    from restive.live.journal import is_url
    from restive.live.operator_files import parsed_results
    from restive.live.sheets import read_sheet

    with opened(file) as agent:
        words, before = agent.settings.words, agent.num_arms
        sheet = read_sheet(results, words)
        receipt = agent.correct(parsed_results(agent, sheet), tick, note, actor=by)
        back = agent.num_arms - before
    if back:
        say(f"{words.count(back, 'arm')} who had left by that result can be on the next list again")
    noted = counted(receipt.new, "correction")
    where = "--in-place" if is_url(file) else "--out NEW.db"
    say(f"{noted} noted; this counts once you run: restive live rebuild {quote(file)} {where}")


@live.command()
def rebuild(
    file: File,
    out: Annotated[
        str | None,
        typer.Option(
            help="The new file; move it over FILE only while nobody uses that.",
            callback=checked_place,
        ),
    ] = None,
    in_place: Annotated[
        bool, typer.Option("--in-place", help="Let FILE become it, while others may use it.")
    ] = False,
) -> None:
    """Make a new file of all sightings in the order of time, with corrections taken in."""
    from restive.arguments import counted
    from restive.live.creating import rebuild_file

    if (out is None) != in_place:
        raise ProblemError(
            "say where the new file goes: --out NEW, or --in-place (take a `restive live backup` "
            "first)"
        )
    with spinner(f"rebuilding {short(file)}") as show:
        rebuild_file(file, out, lambda done, total: show("events", done, total))
    new = file if out is None else out
    with opened(new) as agent:
        lists = counted(agent.status().decisions, "list")
    say(f"{new}: {lists}, with all corrections and late results; go on with this file")


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
