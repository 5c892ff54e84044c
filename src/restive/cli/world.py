"""Two questions that decide what a problem is: do pulls change arms, and does every arm count?

A call centre whose model says that calls change nobody solves another problem than its own, so who
sits at a terminal is asked. Elsewhere both are taken as no, and a line at the end says so.
"""

from __future__ import annotations

import sys
from typing import Annotated, NamedTuple

import typer

from restive.cli.asking import ask as ask_yes
from restive.errors import ProblemError

__all__ = ["Controlled", "Nouns", "Pay", "Seen", "WorldFlags", "asked_world", "in_terminal"]

Controlled = Annotated[
    bool | None,
    typer.Option(
        "--controlled/--no-controlled",
        help="Whether pulls change how arms move (default: asked in a terminal, else they do not).",
        show_default=False,
    ),
]
Pay = Annotated[
    str | None,
    typer.Option(
        help="When arms pay: pulled, or always, also while they are not pulled "
        "(default: asked in a terminal, else pulled).",
        show_default=False,
    ),
]

Seen = Annotated[
    str,
    typer.Option(
        help="When arms are seen: pulled, or always, also in steps without a pull; a row then "
        "tells the state before the pull of its step."
    ),
]


class Nouns(NamedTuple):
    """What things are called in questions and answers."""

    arm: str
    arms: str
    pull: str
    tick: str


STEPS = Nouns("arm", "arms", "pull", "step")


class WorldFlags(NamedTuple):
    """What flags and answers say of the arms, or what is taken as true without them."""

    controlled: bool
    pay: str
    assumed: str = ""  # a sentence, where nobody said all of it

    def text(self, nouns: Nouns) -> str:
        """Say it."""
        moves = "changes" if self.controlled else "does not change"
        pays = (
            f"every {nouns.arm} counts in every {nouns.tick}"
            if self.pays_always
            else f"only what a {nouns.pull} finds counts"
        )
        return f"a {nouns.pull} {moves} how {nouns.arms} go on, and {pays}"

    @property
    def pays_always(self) -> bool:
        """Whether arms count while they are not pulled."""
        return self.pay == "always"


def in_terminal() -> bool:
    """Whether somebody is there to answer."""
    return sys.stdin.isatty() and sys.stdout.isatty()


def asked_world(
    controlled: bool | None, pay: str | None, *, ask: bool, nouns: Nouns = STEPS
) -> WorldFlags:
    """Return what was said, or is answered where `ask` lets it be asked, or else is assumed."""
    from restive.problem.problem_file import PAY

    if pay is not None and pay not in PAY:
        raise ProblemError(f"--pay must be one of {', '.join(PAY)}, got {pay!r}")
    if ask and controlled is None:
        controlled = ask_yes(
            f"Does a {nouns.pull} change how {nouns.arms} go on, as a reminder or a repair does?"
        )
    if ask and pay is None:
        always = ask_yes(
            f"Does every {nouns.arm} count in every {nouns.tick}, with a {nouns.pull} or without?"
        )
        pay = "always" if always else "pulled"
    flags = [
        flag
        for flag, answer in (("--controlled", controlled), ("--pay always", pay))
        if answer is None
    ]
    world = WorldFlags(bool(controlled), pay or "pulled")
    if not flags:
        return world
    return world._replace(
        assumed=f"assumed: {world.text(nouns)}; if that is not so, say {' or '.join(flags)}"
        + (" or both" if len(flags) > 1 else "")
    )
