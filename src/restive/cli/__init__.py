"""The command line: parse, call, print.

A file per group of commands: start with that of `plan`. `tables` and `progress` have what they
print with, `completion` what a shell completes, `chores` what `warm-up` compiles.

May import everything; what a command needs is imported when it is called.
"""

from __future__ import annotations

import codecs
import os
import sys
from typing import Annotated, NoReturn

import typer

from restive import __version__
from restive.cli.compare import compare
from restive.cli.fit import fit
from restive.cli.init import init
from restive.cli.live import live
from restive.cli.pick import pick
from restive.cli.plan import plan
from restive.cli.progress import say
from restive.cli.replay import replay
from restive.cli.reproduce import reproduce
from restive.cli.serve import serve
from restive.cli.speech import flags_of, spoken
from restive.cli.study import export, report, run, status
from restive.cli.warm_up import warm_up
from restive.cli.zoo import zoo
from restive.errors import RestiveError

__all__ = ["app", "main"]

app = typer.Typer(
    no_args_is_help=True,
    rich_markup_mode=None,  # brackets are meant: [[arm]]
    pretty_exceptions_enable=False,
    help="Restless bandits whose arms are seen only when pulled: plan, learn and measure.",
    epilog="To begin: restive init problem.toml, change the file, restive plan problem.toml.",
)


PLAIN = {"±": "+-", "“": '"', "”": '"', "²": "^2", "…": "...", "×": "x"}
PLAINLY = "restive-plainly"


def _in_plain_letters(error: UnicodeError) -> tuple[str, int]:
    """Replace what the terminal's encoding has no letter for."""
    if not isinstance(error, UnicodeEncodeError):
        raise error
    missing = error.object[error.start : error.end]
    return "".join(PLAIN.get(letter, "?") for letter in missing), error.end


codecs.register_error(PLAINLY, _in_plain_letters)


def main() -> None:
    """Run the command line; a RestiveError becomes one line on stderr and exit status 2."""
    for name in ("stdin", "stdout", "stderr"):  # None where a caller has closed it
        if getattr(sys, name) is None:
            setattr(sys, name, open(os.devnull, "r" if name == "stdin" else "w"))  # noqa: SIM115
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(errors=PLAINLY)
    try:
        try:
            app()
        finally:
            sys.stdout.flush()
    except BrokenPipeError:
        sys.stderr.close()  # the reader has gone (as in `restive plan ... | head`)
        sys.exit(141)
    except RestiveError as error:
        _fail(spoken(str(error), _flags(sys.argv)))
    except KeyboardInterrupt:
        _fail("stopped", 130)
    except SystemExit as end:  # which Typer makes of Ctrl-C, without a word
        if sys.argv[1:2] == ["live"] and "unexpected extra arg" in str(end.__context__):
            say('Write a name with a blank in quotes: "Anna Meier"', sys.stderr)
        if isinstance(getattr(end.__context__, "__cause__", None), KeyboardInterrupt):
            _fail("stopped", 130)
        raise
    except MemoryError:
        _fail("not enough memory for a problem of this size")
    except OSError as error:
        sys.stdout = open(os.devnull, "w")  # noqa: SIM115 (what is left in it would fail again)
        _fail(str(error))


def _fail(message: str, status: int = 2) -> NoReturn:
    say(f"restive: {message}", sys.stderr)
    sys.exit(status)


def _flags(words: list[str]) -> list[str]:
    """Return what the command that was given can be told."""
    for command in app.registered_commands:
        name = command.name or getattr(command.callback, "__name__", "").replace("_", "-")
        if command.callback is not None and words[1:2] == [name]:
            return flags_of(command.callback)
    return []


def _version(wanted: bool) -> None:
    if wanted:
        print(f"restive {__version__}")
        raise typer.Exit


@app.callback()
def _root(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version.")
    ] = False,
) -> None:
    pass


app.command()(init)
app.command()(plan)
app.command()(pick)
app.command()(reproduce)
app.command()(run)
app.command()(status)
app.command()(report)
app.command()(export)
app.command()(compare)
app.command()(zoo)
app.command()(fit)
app.command()(replay)
app.command()(serve)
app.add_typer(live, name="live")
app.command()(warm_up)
