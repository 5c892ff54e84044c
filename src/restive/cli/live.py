"""`restive live`: a durable agent that is run with CSV files."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from restive.cli.progress import spinner
from restive.errors import ProblemError

if TYPE_CHECKING:
    from restive.live.agent import LiveAgent
    from restive.live.answers import Receipt

__all__ = ["live"]

live = typer.Typer(
    no_args_is_help=True,
    help="Run an agent for months, from one file that survives kills.",
)

File = Annotated[Path, typer.Argument(metavar="FILE", help="The agent's file.")]
By = Annotated[str, typer.Option(help="Who does this, for the journal.")]
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON.")]
COMMAND_LINE = "command line"


@live.command()
def init(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="The file to make.")],
    pulls: Annotated[int, typer.Option(min=1, help="Arms pulled each tick.")],
    prior: Annotated[
        Path | None, typer.Option(help="prior.json, as `restive fit` writes it.")
    ] = None,
    levels: Annotated[
        str | None,
        typer.Option(help="Instead: p01 and p11 are each one of these, by commas, all as likely."),
    ] = None,
    arms: Annotated[
        Path | None,
        typer.Option(help="CSV file: arm, kind, last_state, last_seen (a date) or elapsed."),
    ] = None,
    clock: Annotated[
        str, typer.Option(help="weekly, daily, hourly, a period such as PT6H; calls, or given.")
    ] = "calls",
    start: Annotated[str | None, typer.Option(help="When the first tick begins.")] = None,
    zone: Annotated[str, typer.Option(help="Whose clocks count, as Asia/Kolkata.")] = "UTC",
    by_hand: Annotated[
        bool, typer.Option("--by-hand", help="Ticks pass when `next --date` says so.")
    ] = False,
    policy: Annotated[str, typer.Option(help="What is played for a sampled system.")] = "whittle",
    seed: Annotated[int, typer.Option(min=0, help="Of the agent's draws.")] = 0,
    audit: Annotated[int, typer.Option(min=0, help="Of the pulls, how many are drawn evenly.")] = 0,
    missing: Annotated[
        str | None,
        typer.Option(help="Where pulling moves arms: refuse, or as-not-pulled (approximate)."),
    ] = None,
    settings: Annotated[
        Path | None, typer.Option(help="TOML file with [outcomes]: what results mean.")
    ] = None,
    max_elapsed: Annotated[int | None, typer.Option(help="Ages told apart.")] = None,
    by: By = COMMAND_LINE,
) -> None:
    """Make the file of a new agent."""
    from restive.live.operator_files import create_from_files

    with spinner(f"making {file.name}"):
        made = create_from_files(
            file, prior, levels, arms, settings,
            {"num_pulls": pulls, "policy_mapping": policy, "seed": seed, "audit_pulls": audit,
             "missing": missing, "max_elapsed": max_elapsed},
            {"clock": clock, "start": start, "zone": zone, "by_hand": by_hand}, by,
        )  # fmt: skip
    status = made.status()
    print(f"{file}: {status.arms:,} arms, {pulls:,} pulls a tick")
    made.close()


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
    skip: Annotated[bool, typer.Option("--skip", help="Pass over a million missed ticks.")] = False,
    as_json: AsJson = False,
    by: By = COMMAND_LINE,
) -> None:
    """Write which arms to pull now; asked again, the same."""
    from restive.files import require_no_database
    from restive.live.operator_files import decision_text
    from restive.live.sheets import read_sheet, write_text

    if out is not None:
        require_no_database(out)
    with _opened(file) as agent:
        tick = _tick(agent, tick, date)
        out_of_order = []
        if unavailable is not None:
            sheet = read_sheet(unavailable)
            sheet.require("arm")
            out_of_order = [row["arm"] for row in sheet.rows]
        before = agent.status()
        if wait_for is not None:
            _require_share(before.decided, before.open, wait_for)
        decision = agent.decide(
            tick=tick, num_pulls=pulls, unavailable=out_of_order, skip=skip, actor=by
        )
        if decision.tick != before.tick and before.open:
            note = f"{before.open} results of tick {before.tick} are missing; they count as unseen"
            print(f"note: {note} until they come", file=sys.stderr)
        text, label = decision_text(agent, decision), agent.settings.clock.label(decision.tick)
        if out is not None:
            write_text(out, text)
        if as_json:
            print(json.dumps(asdict(decision), default=datetime.isoformat))
        elif out is None:
            print(text, end="")
        else:
            count = f"{len(decision.arms):,} arms"
            print(f"{out}: {count} for tick {decision.tick} {label}".rstrip())


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
    from restive.live.operator_files import record_sheet, rejected_text
    from restive.live.sheets import read_sheet, write_text

    sheet = read_sheet(results)
    with _opened(file) as agent:
        done = record_sheet(
            agent, sheet, _tick(agent, tick, date), accept_good=accept_good,
            pulled_instead=pulled_instead, actor=by,
        )  # fmt: skip
    if done.rejected:
        rejected = results.with_name(f"{results.stem}.rejected.csv")
        write_text(rejected, rejected_text(sheet, done.rejected))
        print(f"note: {len(done.rejected)} rows were not taken: {rejected}", file=sys.stderr)
    if as_json:
        data = {"repeated": done.repeated, "rejected": done.rejected, **asdict(done.receipt)}
        print(json.dumps(data))
    elif done.repeated is not None:
        total = done.receipt.new + done.receipt.known + done.receipt.late + done.receipt.superseded
        print(f"{total} known already: this very file was recorded (last tick {done.repeated})")
    else:
        print(_receipt(done.receipt))


@live.command()
def join(file: File, arms: Path, as_json: AsJson = False, by: By = COMMAND_LINE) -> None:
    """Let the arms of a CSV file join: arm, kind, last_state, last_seen or elapsed."""
    from restive.live.operator_files import arms_of_sheet
    from restive.live.sheets import read_sheet

    sheet = read_sheet(arms)
    with _opened(file) as agent:
        new = arms_of_sheet(sheet, agent.kinds, agent.settings.clock, agent.tick_of_arms, {})
        receipt = agent.join(
            {arm.name: arm.kind for arm in new},
            {a.name: (a.last_state, a.elapsed) for a in new if a.last_state is not None},
            actor=by,
        )
    print(json.dumps(asdict(receipt)) if as_json else _receipt(receipt))


@live.command()
def leave(file: File, arms: Path, as_json: AsJson = False, by: By = COMMAND_LINE) -> None:
    """Let the arms of a CSV file leave for ever."""
    from restive.live.sheets import read_sheet

    sheet = read_sheet(arms)
    sheet.require("arm")
    with _opened(file) as agent:
        receipt = agent.leave([row["arm"] for row in sheet.rows], actor=by)
    print(json.dumps(asdict(receipt)) if as_json else _receipt(receipt))


@live.command()
def status(file: File, as_json: AsJson = False) -> None:
    """Tell where an agent stands; exit status 1 if there is an alarm."""
    with _opened(file) as agent:
        found = agent.status()
    if as_json:
        print(json.dumps(asdict(found), indent=2))
    else:
        from restive.live.status import status_lines

        print("\n".join(status_lines(found)))
    if found.alarms:
        raise typer.Exit(1)


@live.command()
def acknowledge(
    file: File,
    alarm: Annotated[int, typer.Argument(help="The alarm's number, from `status`.")],
    note: Annotated[str, typer.Option(help="What was found.")],
    by: By = COMMAND_LINE,
) -> None:
    """Say that somebody has looked at an alarm."""
    with _opened(file) as agent:
        agent.acknowledge(alarm, note, actor=by)


@live.command()
def check(
    file: File,
    last_good: Annotated[
        Path | None, typer.Option(help="Write a copy that ends with the last good event.")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Walk the whole journal: the chain of digests, and the tables against the events."""
    from restive.live.creating import write_good_part
    from restive.live.journal import Journal
    from restive.live.sql_tables import check as check_journal

    journal = Journal(file)
    try:
        if last_good is not None:
            seq = write_good_part(journal, last_good)
            print(json.dumps({"good": seq}) if as_json else f"{last_good}: events 1 to {seq:,}")
            return
        with spinner(f"checking {file.name}"):
            count = check_journal(journal)
    finally:
        journal.close()
    print(json.dumps({"events": count}) if as_json else f"{file}: {count:,} events, all good")


@live.command()
def backup(file: File, out: Annotated[Path, typer.Argument(help="The copy to make.")]) -> None:
    """Copy an agent's file while others may write to it."""
    from restive.live.journal import Journal

    journal = Journal(file)
    try:
        journal.backup(out)
    finally:
        journal.close()
    print(f"written: {out}")


@live.command()
def export(
    file: File,
    out: Annotated[Path, typer.Option(help="File to write: .csv, .jsonl or .parquet.")],
    table: Annotated[str, typer.Option(help="pulls, events, arms or beliefs.")] = "pulls",
) -> None:
    """Write a table of an agent's file."""
    from restive.live.operator_files import export_table

    with _opened(file) as agent:
        count = export_table(agent, table, out)
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
    from restive.live.operator_files import parsed_results
    from restive.live.sheets import read_sheet

    sheet = read_sheet(results)
    with _opened(file) as agent:
        receipt = agent.correct(parsed_results(agent, sheet), tick, note, actor=by)
    print(f"corrections journaled: {receipt.new}; `restive live rebuild` takes them in")


@live.command()
def rebuild(file: File, out: Annotated[Path, typer.Option(help="The new file to make.")]) -> None:
    """Make a new file of all sightings in the order of time, with corrections taken in."""
    from restive.live.creating import rebuild_file

    with spinner(f"rebuilding {file.name}"):
        rebuild_file(file, out)
    with _opened(out) as agent:
        print(f"{out}: {agent.status().decisions:,} decisions")


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

    with _opened(file) as agent:
        if name is None:
            for one in agent.tokens():
                ends = "" if one.ends is None else f", ends {utc_time(one.ends):%Y-%m-%d %H:%M} UTC"
                print(f"{one.name}: {one.role}{ends}")
        elif remove:
            agent.remove_token(name, actor=by)
        else:
            print(agent.make_token(name, role, days, actor=by))


@contextmanager
def _opened(file: Path) -> Iterator[LiveAgent]:
    from restive.live.agent import LiveAgent

    with spinner(f"opening {file.name}") as show:
        agent = LiveAgent.open(file, progress=lambda done, total: show("events", done, total))
    with agent:
        yield agent


def _tick(agent: LiveAgent, tick: int | None, date: str | None) -> int | None:
    if tick is not None and date is not None:
        raise ProblemError("give --tick or --date, not both")
    return tick if date is None else agent.settings.clock.tick_of(date)


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


def _receipt(receipt: Receipt) -> str:
    words: list[tuple[int, str]] = [
        (receipt.new, "new"),
        (receipt.known, "known already"),
        (receipt.late, "late"),
        (receipt.superseded, "too late to be used"),
    ]
    text = ", ".join(f"{count} {word}" for count, word in words if count) or "nothing new"
    return text + ("; every pull has a result" if receipt.closed else "")
