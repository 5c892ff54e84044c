"""Questions to whoever sits at a terminal: broken between words, answered by yes or no."""

from __future__ import annotations

import sys
from contextlib import suppress
from typing import TextIO

import typer

from restive.cli.progress import wrapped

__all__ = ["ask", "go_on"]

ANSWERS = {"y": True, "yes": True, "n": False, "no": False}


def ask(question: str, out: TextIO | None = None) -> bool:
    """Ask until the answer is yes or no."""
    stream = sys.stdout if out is None else out
    while True:
        answer = _answer(f"{question} [y/n]: ", stream)
        if answer is not None:
            return answer
        print("please answer yes or no", file=stream)


def go_on(what: str) -> bool:
    """Ask whether something is meant; False where nobody can be asked. A no ends the command."""
    if not (sys.stdin.isatty() and sys.stderr.isatty()):
        return False
    if not _answer(f"{what}. Go on? [y/N] ", sys.stderr):
        print("nothing was changed", file=sys.stderr)
        raise typer.Exit(1)
    return True


def _answer(question: str, stream: TextIO) -> bool | None:
    """Return what is answered; None for neither yes nor no. The end of the input ends the command.

    What was typed before the question was not meant for it.
    """
    _drop_typed()
    print(wrapped(question.rstrip()), end=" ", file=stream, flush=True)
    line = sys.stdin.readline()
    if not line:
        raise typer.Abort
    first = line.replace(",", " ").split()[:1]
    return ANSWERS.get(first[0].lower().rstrip(".!")) if first else None


def _drop_typed() -> None:
    if not sys.stdin.isatty():
        return
    with suppress(ImportError, OSError):  # elsewhere than on Unix, or no real terminal
        import termios

        with suppress(termios.error):
            termios.tcflush(sys.stdin.fileno(), termios.TCIFLUSH)
