"""`restive live join`, `leave` and `return`: who can be on the next list."""

from __future__ import annotations

import json
import sys
from dataclasses import asdict
from pathlib import Path
from shlex import quote
from typing import TYPE_CHECKING, Annotated

import typer

from restive.cli.asking import go_on
from restive.cli.live_init import COMMAND_LINE, By
from restive.cli.live_places import OTHERS, AsJson, File, opened, way_back
from restive.cli.progress import say
from restive.errors import ProblemError

if TYPE_CHECKING:
    from restive.live.agent import LiveAgent
    from restive.live.told.answers import Receipt

__all__ = ["come_back", "join", "leave"]

A_FEW = 5  # who may leave unasked


def join(
    file: File,
    arms: Annotated[
        list[str],
        typer.Argument(
            metavar="NAME...",
            help="Who joins; or a CSV file: arm, kind, last_state, last_seen or elapsed.",
        ),
    ],
    as_json: AsJson = False,
    by: By = COMMAND_LINE,
) -> None:
    """Let people (arms) join, by name or from a CSV file; they can be on the next list."""
    from restive.live.people.arm_files import arms_of_names, arms_of_sheet, require_new
    from restive.live.people.sheets import read_sheet

    with opened(file, to_write=True) as agent:
        words = agent.settings.words
        if _is_file(arms):
            sheet = read_sheet(arms[0], words)
            new = arms_of_sheet(sheet, agent.kinds, agent.settings, agent.tick_of_arms, {})
            require_new(agent, sheet, new)
        else:
            new = arms_of_names(agent, arms)
        here = agent.names_left([arm.name for arm in new])
        receipt = agent.join(
            {arm.name: arm.kind for arm in new},
            {a.name: (a.last_state, a.elapsed) for a in new if a.last_state is not None},
            actor=by,
        )
    back = f"; of these, had left and are back: {', '.join(here)}" if here else ""
    _tell(receipt, receipt.text_of_arms("joined", words) + back, as_json)


def leave(
    file: File,
    arms: Annotated[
        list[str],
        typer.Argument(metavar="NAME...", help="Who leaves; or a CSV file of names: arm."),
    ],
    yes: Annotated[
        bool, typer.Option("--yes", help="Let more than a quarter leave, unasked.")
    ] = False,
    as_json: AsJson = False,
    by: By = COMMAND_LINE,
) -> None:
    """Let people (arms) leave, by name or from a CSV file; they are on no list any more."""
    from restive.live.people.arm_files import names_of_sheet
    from restive.live.people.sheets import read_sheet
    from restive.live.told.missing import with_names

    with opened(file, to_write=True) as agent:
        words = agent.settings.words
        names = arms
        if _is_file(arms):
            names = names_of_sheet(agent, read_sheet(arms[0], words))
        _require_there(agent, names)
        if not yes:
            _ask_of_many(agent, names)
        receipt = agent.leave(names, actor=by)
        tick, label = agent.tick, agent.settings.clock.label
        uncalled = agent.uncalled(tick) if tick >= 0 else set()
        listed = [name for name in dict.fromkeys(names) if name in uncalled]
    back = way_back(file, names)
    if receipt.new > 1:
        back = f"if that was not meant: restive live undo {quote(file)}"
    told = receipt.text_of_arms("left", words) + (f"; {back}" if receipt.new else "")
    _tell(receipt, told, as_json)
    if listed and receipt.new:
        on = f"on the list of {words.when(tick, label(tick))}"
        said = f"{on}, and need no {words.pull} any more{with_names(listed)}"
        say(said, sys.stderr if as_json else None)


def _ask_of_many(agent: LiveAgent, names: list[str]) -> None:
    """Ask whether it is meant that so many leave: a file of all people is easily taken for it."""
    words, there = agent.settings.words, agent.num_arms
    count = len({*names}.difference(agent.names_left(names)))
    if count <= A_FEW or 4 * count <= there:
        return
    what = f"{count:,} of {words.count(there, 'arm')} would leave for ever"
    if not go_on(what):
        raise ProblemError(f"{what}; nothing was changed. If that is meant, say --yes")


def _is_file(names: list[str]) -> bool:
    """Whether what is named is a file: a slip in its name must not be taken for a person's."""
    from restive.arguments import suggestion

    if len(names) != 1:
        return False
    path = Path(names[0])
    return path.is_file() or suggestion(path.suffix.lower(), OTHERS, 0.7).startswith("did")


def _require_there(agent: LiveAgent, names: list[str]) -> None:
    try:
        agent.kinds_of(names)
    except ProblemError as error:
        raise ProblemError(f"{error}; nothing was changed") from None


def come_back(
    file: File,
    names: Annotated[list[str], typer.Argument(metavar="NAME...", help="Who left by mistake.")],
    as_json: AsJson = False,
    by: By = COMMAND_LINE,
) -> None:
    """Take back those who left by mistake, with all that was seen of them."""
    with opened(file, to_write=True) as agent:
        settings, words = agent.settings, agent.settings.words
        _require_there(agent, names)
        told = agent.left_with(names)  # of whom a result says so, and it stands
        receipt = agent.come_back(names, actor=by)
        now = agent.changeable()
    here = f"{words.count(receipt.known, 'arm')} had not left" if receipt.known else ""
    back = f"{words.count(receipt.new, 'arm')} back, and can be on the next list"
    _tell(receipt, ", ".join(filter(None, (back if receipt.new else "", here))), as_json)
    for name, tick in told.items():
        option, which = settings.clock.option(tick), words.when(tick)
        how = f"change {quote(file)} {quote(name)} OUTCOME {option}"
        if (tick, name) not in now:
            how = f"correct {quote(file)} RESULTS.csv {option} --note WHY"
        word = settings.outcome_text("leave")
        said = f"the result of {name} in {which} is still {word!r}; if that is wrong, too"
        say(f"{said}: restive live {how}", sys.stderr if as_json else None)


def _tell(receipt: Receipt, text: str, as_json: bool) -> None:
    if as_json:
        print(json.dumps(asdict(receipt)))
    else:
        say(text)
