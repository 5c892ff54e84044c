"""What `restive fit` and `restive replay` are told of a log: columns, steps, states, rewards."""

from __future__ import annotations

import sys
from math import isfinite
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from restive.cli.world import WorldFlags
from restive.errors import ProblemError

if TYPE_CHECKING:
    from restive.logs.decision_words import Units
    from restive.logs.log import Log

__all__ = [
    "ArmColumn",
    "AsJson",
    "By",
    "LogFile",
    "Pulled",
    "RewardWords",
    "Rewards",
    "SameStep",
    "Seed",
    "SkipBad",
    "State",
    "StateFrom",
    "States",
    "Step",
    "Time",
    "Unit",
    "Zone",
    "doubt_rows",
    "finite",
    "load",
    "names",
    "numbers",
    "unpulled",
]

MANY_TIMES = 2  # as many pulls in a log as are asked for: its rows may be something else

LogFile = Annotated[
    Path, typer.Argument(metavar="LOG", help="CSV or Parquet file, a row per sighting.")
]
# Both are needed; a message that lists the columns helps more than one that says "missing option".
Time = Annotated[
    str | None,
    typer.Option(help="Column of times: numbers, or dates (needed).", show_default=False),
]
ArmColumn = Annotated[
    str | None,
    typer.Option(
        "--arm",
        help="Column of arms (needed); its name is what they are called.",
        show_default=False,
    ),
]
State = Annotated[
    str | None, typer.Option(help="Column of states: numbers from 0, the worst, or names.")
]
StateFrom = Annotated[
    str | None, typer.Option(help='Instead of --state: good where this holds, as in "delay < 15".')
]
States = Annotated[
    str | None,
    typer.Option(help="Names of the states, worst first, with commas; or a number of quantiles."),
]
Step = Annotated[str | None, typer.Option(help="Length of a step: 1d, 2w, 6h, 15min, or a number.")]
Zone = Annotated[
    str | None, typer.Option(help="Time zone whose days count, such as Europe/Berlin.")
]
By = Annotated[str | None, typer.Option(help="Column of kinds of arms.")]
Pulled = Annotated[
    str | None, typer.Option(help="Column that says which arms were pulled (default: all).")
]
SameStep = Annotated[
    str, typer.Option(help="If an arm has several rows in one step: error, last or worst.")
]
SkipBad = Annotated[bool, typer.Option("--skip-bad", help="Skip rows that cannot be used.")]
Rewards = Annotated[
    str | None, typer.Option(help="Reward of each state, with commas (default: 0 to 1).")
]
Unit = Annotated[str, typer.Option(help='What a pull is called, in the plural: "calls".')]
RewardWords = Annotated[
    str, typer.Option("--reward", help='What a reward of 1 is: "adherent patients".')
]
Seed = Annotated[int, typer.Option(min=0, help="The same seed gives the same numbers.")]
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON instead of tables.")]


def load(
    path: Path, time: str | None, arm: str | None, state: str | None, state_from: str | None,
    states: str | None, step: str | None, zone: str | None, by: str | None, pulled: str | None,
    same_step: str, skip_bad: bool, progress: Any,
) -> Log:  # fmt: skip
    """Read a log by its options."""
    from restive.logs.reading import load_log

    if time is None or arm is None or (state is None and state_from is None):
        raise ProblemError(_which_columns(path, time, arm, state or state_from))
    named: int | list[str] | None = None
    if states is not None:
        named = int(states) if states.strip().isdigit() else names(states)
    return load_log(
        path, time=time, arm=arm, state=state, state_from=state_from, states=named, step=step,
        zone=zone, by=by, pulled=pulled, same_step=same_step, skip_bad=skip_bad,
        progress=lambda share: progress("reading", share),
    )  # fmt: skip


def doubt_rows(log: Log, pulls: int, seen: str, units: Units) -> None:
    """Say on stderr where a step looks too short, and where rows may not all be pulls.

    As a row for everyone in each step is not.
    """
    apart = log.steps_apart
    if apart > 1:
        print(
            f"note: all rows are a multiple of {apart} {units.step}s apart: is a step longer, as "
            f"--step {'1w' if (apart, units.step) == (7, 'day') else apart}?",
            file=sys.stderr,
        )
    if log.has_pulled or seen == "always" or log.usual_pulls < MANY_TIMES * pulls:
        return
    note = (
        f"all rows count as {units.pulls}, {log.usual_pulls:,} a {units.step}, and this is for "
        f"{pulls:,}; if a column tells which were, name it with --pulled: else nothing is known of "
        f"a {units.step} without one"
    )
    print(f"note: {note}", file=sys.stderr)


def _which_columns(path: Path, time: str | None, arm: str | None, state: str | None) -> str:
    """Say which columns must be named, and which there are."""
    from restive.logs.reading.file import open_log

    missing = [
        flag
        for flag, given in (
            ("--time (when)", time),
            ("--arm (which arm)", arm),
            ("--state or --state-from (what was seen)", state),
        )
        if given is None
    ]
    header = open_log(path).header
    return f"{path}: say which column is which: {', '.join(missing)}; there are {', '.join(header)}"


def names(text: str) -> list[str]:
    """Return what stands between commas; those in brackets are part of a name."""
    from restive.learn.learner_text import names_in

    named = names_in(text)
    if not named:
        raise ProblemError(f"expected names separated by commas, got {text!r}")
    return named


def numbers(text: str | None) -> list[float] | None:
    """Return the numbers between commas."""
    if text is None:
        return None
    try:
        return [float(part) for part in text.split(",")]
    except ValueError:
        raise ProblemError(f"--rewards must be numbers separated by commas, got {text!r}") from None


def unpulled(world: WorldFlags, log: Log, rewards: str | None) -> Any:
    """What arms pay while they are not pulled."""
    from restive.logs.fitted import log_rewards

    return log_rewards(log, numbers(rewards)) if world.pays_always else None


def finite(value: float) -> float | None:
    """Return what JSON has a number for."""
    return value if isfinite(value) else None
