"""`restive live record`, `change`, `undo`, `correct` and `rebuild`: results, and slips in them."""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from shlex import quote
from typing import TYPE_CHECKING, Annotated

import typer

from restive.cli.asking import go_on
from restive.cli.live_init import COMMAND_LINE, By
from restive.cli.live_places import AsJson, File, checked_place, last_part, opened, way_back
from restive.cli.progress import say, spinner
from restive.errors import ProblemError

if TYPE_CHECKING:
    from restive.live.told.answers import Alarm
    from restive.live.words import Words

__all__ = ["Date", "Tick", "change", "correct", "rebuild", "record", "tell_alarms", "undo"]

Tick = Annotated[int | None, typer.Option(min=0, help="Which week (tick), counted from 0.")]
Date = Annotated[str | None, typer.Option(help="Or a date in it, such as 2026-12-07.")]


def record(
    file: File,
    results: Annotated[
        Path,
        typer.Argument(
            metavar="RESULTS", help="CSV file: arm, outcome (or state), and tick or date."
        ),
    ],
    tick: Tick = None,
    date: Date = None,
    accept_good: Annotated[
        bool, typer.Option("--accept-good", help="Take good rows; write the others to a file.")
    ] = False,
    pulled_instead: Annotated[
        bool,
        typer.Option("--pulled-instead", help="Take results of people who were not on the list."),
    ] = False,
    as_json: AsJson = False,
    by: By = COMMAND_LINE,
) -> None:
    """Record results of calls (pulls), in parts, late, or twice: the same file is harmless."""
    from restive.arguments import counted
    from restive.live.people.operator_files import record_sheet
    from restive.live.people.sheets import read_sheet, rejected_text, write_text
    from restive.live.told.answers import RefusedError
    from restive.live.told.missing import of_which_list, with_names

    with opened(file, to_write=True) as agent:
        words = agent.settings.words
        sheet = read_sheet(results, words)
        told = list(dict.fromkeys(row.get("arm", "") for row in sheet.rows))
        before = agent.names_left(told)
        try:
            done = record_sheet(
                agent, sheet, agent.tick_asked(tick, date), accept_good=accept_good,
                pulled_instead=pulled_instead, actor=by,
            )  # fmt: skip
        except RefusedError as error:
            by_row = any(row.get("tick") or row.get("date") for row in sheet.rows)
            advice = of_which_list(agent, error.mistakes, by_row)
            raise RefusedError(error.mistakes, f"{error}{advice}") from None
        missing = [name for name, result in agent.results().items() if result == "open"]
        now = agent.names_left(told)
        alarms = agent.alarms()
        whole = done.receipt.closed or missing or not done.receipt.new
        others = 0 if whole else agent.status().unshown  # who is always seen, on the list or not
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
        say(f"{counted(total, 'result')} known already: this very file was recorded ({when})")
    else:
        said = done.receipt.text(words)
        if not sheet.has_results:
            said = f"{results}: no outcome is filled in, so nothing was recorded"
        left, back = ([n for n in a if n not in b] for a, b in ((now, before), (before, now)))
        said += f"; {words.count(len(back), 'arm')} back{with_names(back)}" if back else ""
        if missing and done.receipt.new:
            said += f"; {len(missing):,} still missing{with_names(missing)}"
        if others:
            rows = f"rows {words.column('arm')},outcome of them go into the same file"
            said += f"; the states of {words.count(others, 'arm')} not on the list, who are seen "
            said += f"every {words.tick}, are still missing: {rows}"
        say(said)
        if left:
            gone = f"{words.count(len(left), 'arm')} left for ever{with_names(left)}"
            say(f"{gone}; {way_back(file, left)}")
    tell_alarms(alarms, file, words)


def change(
    file: File,
    name: Annotated[str, typer.Argument(help="Whose result.")],
    outcome: Annotated[str, typer.Argument(help="What it should have been.")],
    tick: Tick = None,
    date: Date = None,
    by: By = COMMAND_LINE,
) -> None:
    """Change one result of this week (tick), or one that came late since the last list."""
    with opened(file, to_write=True) as agent:
        settings, before = agent.settings, agent.num_arms
        asked = agent.tick_asked(tick, date)
        asked = agent.tick if asked is None else asked
        result = settings.result_of(outcome)
        told = agent.outcome_words(asked).get(name) if asked >= 0 else None
        when = settings.words.when(asked, settings.clock.label(asked))
        if told == settings.outcome_word(result):
            say(f"{name} in {when} is {outcome} already; nothing was changed")
            return
        agent.change(name, result, asked, actor=by)
        left = before - agent.num_arms
        alarms = agent.alarms()
    words = settings.words
    said = f"changed: {name} in {when} is {outcome}"
    said += f"; {name} left for ever; {way_back(file, [name])}" if left > 0 else ""
    say(said + (f"; {name} is back" if left < 0 else ""))
    tell_alarms(alarms, file, words)


def undo(
    file: File,
    event: Annotated[
        int | None, typer.Option(min=1, help="The event that is meant: refuse any other.")
    ] = None,
    yes: Annotated[bool, typer.Option("--yes", help="Do not ask.")] = False,
    as_json: AsJson = False,
    by: By = COMMAND_LINE,
) -> None:
    """Withdraw the last thing that was done, as if it had never happened: a list, results, ..."""
    with opened(file) as agent:
        act, words = agent.last_act(), agent.settings.words
        if act is None and event is None and "parent" in agent.events(0, 1)[0].body:
            raise ProblemError(
                f"nothing was done since the rebuild which made {file}, and a rebuild is not "
                f"undone. To mend a result of this {words.tick}, use `restive live change`, and "
                "for an older one `restive live correct`. A rebuild with --out leaves the file it "
                "was made from, which can go on instead of this one"
            )
        if act is not None and not yes and event in (None, act.event):
            what = act.text(words)
            if not go_on(f"this withdraws {what}"):
                raise ProblemError(f"this would withdraw {what}; say --yes if that is meant")
            event = act.event  # and not what somebody did meanwhile
        done = agent.undo(event, actor=by)
        if as_json:
            print(json.dumps(asdict(done)))
        else:
            lost = "; throw its list away" if done.kind in ("decide", "step") else ""
            say(f"withdrawn: {done.text(words)}{lost}")
        tell_alarms(agent.alarms(), file, words)


def correct(
    file: File,
    results: Annotated[
        Path, typer.Argument(metavar="RESULTS", help="CSV file: arm, outcome (or state).")
    ],
    note: Annotated[str | None, typer.Option(help="Why (required).")] = None,
    tick: Tick = None,
    date: Date = None,
    by: By = COMMAND_LINE,
) -> None:
    """Correct older results; lists learn from that once `rebuild` has made a new file."""
    from restive.arguments import counted
    from restive.live.journal.events import is_url
    from restive.live.people.operator_files import parsed_results
    from restive.live.people.sheets import read_sheet
    from restive.live.told.missing import with_names

    with opened(file, to_write=True) as agent:
        words = agent.settings.words
        if note is None:
            raise ProblemError(
                "say why, for whoever looks at it later: add --note "
                f'"two {words.many("arm")} were mixed up"; nothing was changed'
            )
        given, of = parsed_results(agent, read_sheet(results, words), agent.tick_asked(tick, date))
        gone = [name for name in given if agent.arm(name).left is not None]
        receipt = agent.correct(given, of, note, actor=by)
        back = [name for name in gone if agent.arm(name).left is None]
    if back:
        who = words.count(len(back), "arm")
        say(f"{who} who had left by that result can be on the next list again{with_names(back)}")
    if not receipt.new:
        say(f"{counted(receipt.known, 'correction')} known already; nothing was changed")
        return
    noted = counted(receipt.new, "correction")
    out = "--in-place" if is_url(file) else f"--out {quote(_next_name(file))}"
    rebuilt = f"{quote(file)} {out}"
    noted += " noted" + (f", {receipt.known} known already" if receipt.known else "")
    say(f"{noted}; lists learn from it once you run: restive live rebuild {rebuilt}")


def _next_name(file: str) -> str:
    """Return a name for the file that goes on after this one: calls2.db after calls.db."""
    path = Path(file)
    stem = path.stem.rstrip("0123456789")
    number = int(path.stem[len(stem) :] or 1) + 1
    while path.with_stem(f"{stem}{number}").exists():
        number += 1
    return str(path.with_stem(f"{stem}{number}"))


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
    """Make a new file of all results in the order of time, with corrections taken in."""
    from restive.arguments import counted
    from restive.live.creating import rebuild_file

    if (out is None) != in_place:
        raise ProblemError(
            "say where the new file goes: --out NEW, or --in-place (take a `restive live backup` "
            "first)"
        )
    with spinner(f"rebuilding {last_part(file)}") as show:
        rebuild_file(file, out, lambda done, total: show("events", done, total))
    new = file if out is None else out
    with opened(new) as agent:
        lists = counted(agent.status().decisions, "list")
    say(f"{new}: {lists}, with all corrections and late results; go on with this file")


def tell_alarms(alarms: Sequence[Alarm], file: str, words: Words) -> None:
    """Print open alarms on stderr, where they do not mix with what was asked for."""
    from restive.live.told.status import alarm_lines

    for line in alarm_lines(alarms, file, words):
        say(line, sys.stderr)
