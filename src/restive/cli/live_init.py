"""`restive live init`: the file of a new agent, from other files and answers."""

from __future__ import annotations

import sys
from datetime import date, timedelta
from pathlib import Path
from shlex import quote
from typing import TYPE_CHECKING, Annotated, Any

import typer

from restive.cli.asking import go_on
from restive.cli.live_places import checked_place, last_part
from restive.cli.progress import say as tell
from restive.cli.progress import spinner
from restive.cli.world import Controlled, Nouns, Pay, asked_world, in_terminal
from restive.errors import ProblemError

if TYPE_CHECKING:
    from restive.live.words import Words

__all__ = ["COMMAND_LINE", "By", "init"]

By = Annotated[str, typer.Option(help="Who does this, for the journal.")]
COMMAND_LINE = "command line"


def init(
    file: Annotated[
        str,
        typer.Argument(
            metavar="FILE",
            help="The file to make, or postgresql://USER@HOST/DATABASE#AGENT.",
            callback=checked_place,
        ),
    ],
    pulls: Annotated[
        int | None,
        typer.Option(
            min=1, help="How many are called each week (arms pulled each tick; required)."
        ),
    ] = None,
    prior: Annotated[
        Path | None, typer.Option(help="prior.json, as `restive fit` writes it.")
    ] = None,
    levels: Annotated[
        str | None,
        typer.Option(help="Instead: p01 and p11 are each one of these, by commas, all as likely."),
    ] = None,
    states: Annotated[
        str | None,
        typer.Option(
            help="Instead: nothing is known; names of the states, the worst first, by commas. What "
            "each kind is like is learnt as you go."
        ),
    ] = None,
    controlled: Controlled = None,
    pay: Pay = None,
    may_hurt: Annotated[
        bool,
        typer.Option(
            "--may-hurt",
            help="A call (pull) can make somebody worse (default: with --controlled it cannot).",
        ),
    ] = False,
    arms: Annotated[
        Path | None,
        typer.Option(
            help="CSV file of people: arm (or your word), kind, last_state, last_seen or elapsed."
        ),
    ] = None,
    clock: Annotated[
        str, typer.Option(help="weekly, daily, hourly, a period such as PT6H; calls, or given.")
    ] = "calls",
    start: Annotated[
        str | None, typer.Option(help="When the first week (tick) begins, as 2026-11-16.")
    ] = None,
    zone: Annotated[str, typer.Option(help="Whose clocks count, as Asia/Kolkata.")] = "UTC",
    by_hand: Annotated[
        bool, typer.Option("--by-hand", help="Weeks pass when `next --date` says so.")
    ] = False,
    policy: Annotated[str, typer.Option(help="The rule that makes lists.")] = "whittle",
    seed: Annotated[int, typer.Option(min=0, help="Of random draws.")] = 0,
    learner: Annotated[
        str | None,
        typer.Option(
            help="How it learns: mean_index for few looks at each person, tsde for a long future."
        ),
    ] = None,
    audit: Annotated[
        int, typer.Option(min=0, help="Of the calls, how many go to people drawn evenly.")
    ] = 0,
    rest: Annotated[
        int | None,
        typer.Option(
            min=0,
            help="Weeks for which nobody is called again after a call without a result "
            "(default: 1 where calls change people, else 0).",
        ),
    ] = None,
    missing: Annotated[
        str | None,
        typer.Option(
            help="Calls without a result, where calls change people: refuse, or as-not-pulled."
        ),
    ] = None,
    settings: Annotated[
        Path | None,
        typer.Option(help="TOML file: [outcomes], what results mean; [words], your nouns."),
    ] = None,
    words: Annotated[
        str | None,
        typer.Option(help="Your nouns: arm=patient,pull=call,tick=week,reward=adherent weeks."),
    ] = None,
    max_elapsed: Annotated[
        int | None, typer.Option(help="Weeks since a look that are told apart.")
    ] = None,
    by: By = COMMAND_LINE,
) -> None:
    """Make a new file: who the people are, how many are called, and what is known of them."""
    from restive.live.journal.events import require_absent
    from restive.live.people.operator_files import AssumedWorld, create_from_files, words_of
    from restive.live.people.sheets import read_sheet
    from restive.live.words import TAKEN, Words

    own = None if words is None else Words.from_text(words)
    require_absent(file)
    say = words_of(settings, own)
    if pulls is None:
        raise ProblemError(f"how many {say.many('pull')} are there a {say.tick}? add --pulls 12")
    if arms is not None:  # what is wrong with it is said before any question
        sheet = read_sheet(arms, say)
        own_name = [one for one in sheet.headers if one not in TAKEN]
        if "arm" not in sheet.columns and say.arm == "arm" and own_name:
            raise ProblemError(
                f"{arms}: there is no column 'arm'; if the names are in {own_name[0]!r}, say "
                f"--words arm={quote(own_name[0])}, or --settings with a file that has your [words]"
            )
        sheet.require("arm")
    nouns = Nouns(say.arm, say.many("arm"), say.pull, say.tick)
    world = asked_world(controlled, pay, ask=states is not None and in_terminal(), nouns=nouns)
    if states is None and (controlled is not None or pay is not None or may_hurt):
        raise ProblemError(
            "--controlled, --pay and --may-hurt go with --states; a prior file says all of its "
            "arms itself"
        )
    names = () if states is None else tuple(name.strip() for name in states.split(","))
    _ask_of_far(start, say.tick)
    with spinner(f"making {last_part(file)}"):
        made, since, beyond = create_from_files(
            file, prior, levels, arms, settings,
            {"num_pulls": pulls, "policy_mapping": policy, "seed": seed, "audit_pulls": audit,
             "missing": missing, "max_elapsed": max_elapsed, "words": own, "learner": learner,
             "rest": rest},
            {"clock": clock, "start": start, "zone": zone, "by_hand": by_hand},
            AssumedWorld(names, world.controlled, world.pays_always, not may_hurt), by,
        )  # fmt: skip
    with made:
        found, count, always = made.settings, made.num_arms, made.status().always_seen
        passed = made.tick_of_arms  # since the start, by the clock
    first = found.clock.label(0)
    begins = f"; {say.tick} 0 begins {first}" if first else ""
    if found.clock.kind == "wall":
        begins += f", and {say.many('tick')} pass by the clock"
    tell(f"{file}: {say.count(count, 'arm')}, {say.count(pulls, 'pull')} a {say.tick}{begins}")
    tell(f"learner: {learner_text(found.learner)}")
    mean = found.learner["name"] == "mean_index"
    if not always and (suited := _suited(count / pulls, mean, say)):
        tell(suited)
    if names:
        tell(f"the states, from the worst to the best: {', '.join(names)}")
    if found.outcomes:
        tell(f"what results mean: {found.meanings()}")
    if states is not None:
        tell(world.assumed or f"taken as true: {world.text(nouns)}")
        if world.controlled and not may_hurt:
            tell(f"assumed: a {say.pull} makes no {say.arm} worse; if it may, say --may-hurt")
        if world.controlled:
            tell(
                f"assumed: each {say.pull} does as much as the one before; if {say.many('pull')} "
                f"tire {say.many('arm')}, a list in turn may do better"
            )
    given = (f" --date {first}" if first else " --tick 0") if found.clock.kind == "given" else ""
    tell(f"the first list: restive live next {quote(str(file))}{given} --out list.csv")
    if prior is not None:
        taken = " (taken to be: there are no dates to tell)" if since is None else ""
        gap = say.count(since or 1, "tick")
        note = f"the prior's log ends {gap} before the first {say.tick}{taken}"
        tell(f"note: {note}", sys.stderr)
    if passed > 1:
        note = (
            f"{say.tick} 0 began {passed:,} {say.many('tick')} ago, so that the first list is of "
            f"{say.tick} {passed}; to begin now, make the file anew with --start "
            f"{found.clock.label(passed)}; to go through past {say.many('tick')}, with --by-hand"
        )
        tell(f"note: {note}", sys.stderr)
    for kind in beyond:
        note = (
            f"{prior} has no kind {kind!r}: such {say.many('arm')} begin as any {say.arm} of it "
            f"may be; if {kind!r} is a slip, correct {arms} and make {file} anew"
        )
        tell(f"note: {note}", sys.stderr)


def _suited(apart: float, mean: bool, say: Words) -> str:
    """Say for how long the learner for few looks suits; of another only where looks are few."""
    from restive.learn.advice import RARELY, SUITED

    if apart <= 1 or (not mean and apart < RARELY):
        return ""
    (few, _), (_, next_one), *_ = SUITED
    options = ",".join(f"{key}={value}" for key, value in next_one.items() if key != "name")
    seen = f"each {say.arm} is seen about once in {say.count(round(apart), 'tick')}"
    ticks = say.count(round(few * apart), "tick")
    if mean:
        later = f"--learner '{next_one['name']}({options})'"
        return f"{seen}: this learner suits if no more than {ticks} are to come; else say {later}"
    return f"{seen}: if no more than {ticks} are to come, --learner mean_index suits better"


def _ask_of_far(start: str | None, tick: str) -> None:
    """Ask whether a start more than a year ahead is meant, where somebody can be asked."""
    try:
        begins = None if start is None else date.fromisoformat(start[:10])
    except ValueError:  # which making the clock tells
        return
    if begins is not None and begins > date.today() + timedelta(days=366):
        go_on(f"{tick} 0 would begin {begins}, more than a year from now")


def learner_text(learner: dict[str, Any]) -> str:
    """Say in a line how an agent learns."""
    options = {key: value for key, value in learner.items() if key not in ("name", "learn_kinds")}
    inside = ", ".join(f"{key}={value}" for key, value in options.items())
    name = f"{learner['name']}({inside})" if inside else learner["name"]
    return f"{name}, kinds learnt as you go" if learner.get("learn_kinds") else str(name)
