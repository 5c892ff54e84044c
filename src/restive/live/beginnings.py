"""From files and options to a new agent, for `restive live init`."""

from __future__ import annotations

from os import PathLike
from pathlib import Path
from typing import Any

from restive.arguments import shown
from restive.errors import ProblemError
from restive.learn.priors.independent import grid_prior
from restive.live.agent import LiveAgent
from restive.live.clock import NAMED, Clock
from restive.live.creating import create_file
from restive.live.csv_files import people
from restive.live.roster import ALL, NewArm, arm_of_file
from restive.live.settings import Settings
from restive.live.table_file import read_table
from restive.logs.prior_file import load_prior
from restive.problem.toml_text import parse_toml, read_text

__all__ = ["begin"]


def begin(
    path: str | PathLike[str],
    prior: Path | None,
    levels: str | None,
    arms: Path | None,
    settings_file: Path | None,
    options: dict[str, Any],
    clock_options: dict[str, Any],
    actor: str,
) -> LiveAgent:
    """Make the file of a new agent and open it."""
    clock = _clock(**clock_options)
    states: tuple[str, ...] = ()
    known: dict[str, NewArm] = {}
    if (prior is None) == (levels is None):
        raise ProblemError("say what the arms may be: --prior FILE or --levels 0.1,0.5,0.9")
    if prior is not None:
        found = load_prior(prior)
        kinds: dict[str, Any] = dict(found.kinds)
        states = found.states
        known = {name: arm_of_file(found, k) for k, name in enumerate(found.names)}
    else:
        kinds = {ALL: grid_prior(_levels(str(levels)), 1).arms[0]}
    if arms is not None:
        new = people(read_table(arms), list(kinds), clock, 0, known)
    else:
        new = list(known.values())
    if not new:
        raise ProblemError("who are the arms? pass --arms FILE, with a column 'arm'")
    more = {} if settings_file is None else _settings(settings_file)
    data = {
        **{key: value for key, value in options.items() if value is not None},
        "clock": clock.to_data(),
        "states": list(states),
        **more,
    }
    create_file(path, Settings.from_data(data), kinds, new, actor)
    return LiveAgent.open(path)


def _clock(clock: str, start: str | None, zone: str, by_hand: bool) -> Clock:
    if clock in ("calls", "given"):
        if start is not None:
            raise ProblemError(f"a clock of {clock} has no start; say --clock weekly, or P7D")
        return Clock.calls() if clock == "calls" else Clock.given()
    if start is None:
        raise ProblemError(f"when does the first tick of {shown(clock)} begin? pass --start")
    make = Clock.given if by_hand else Clock.wall
    return make(start, NAMED.get(clock, clock), zone)


def _levels(text: str) -> list[float]:
    try:
        return [float(part) for part in text.split(",")]
    except ValueError:
        raise ProblemError(f"--levels must be numbers by commas, got {shown(text)}") from None


def _settings(path: Path) -> dict[str, Any]:
    try:
        data = parse_toml(read_text(path))
        if "num_pulls" in data or "clock" in data:
            raise ProblemError("pulls and clock are options of `restive live init`")
        Settings.from_data({"num_pulls": 1, **data})
        return data
    except ProblemError as error:
        raise ProblemError(f"{path}: {error}") from None
