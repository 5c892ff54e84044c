"""`restive pick`: today's list."""

from __future__ import annotations

from pathlib import Path
from shlex import quote
from typing import Annotated

import typer

from restive.cli.completion import complete_mappings
from restive.cli.tables import print_lines, print_table

__all__ = ["NO_FILE", "pick", "sightings_file"]

MOST_ROWS = 200  # arms that are printed
NO_FILE = "last.csv"  # stands for one that there is none of yet


def sightings_file(problem: Path) -> str:
    """Return the table of arms that a fit wrote beside a problem, or what stands for one."""
    table = problem.with_name("arms.csv")
    # a fit writes both
    return str(table) if table.exists() and problem.with_name("prior.json").exists() else NO_FILE


def pick(
    problem: Annotated[
        Path,
        typer.Argument(metavar="PROBLEM", help="TOML file with [[arm]] tables, as for `plan`."),
    ],
    sightings: Annotated[
        Path | None,
        typer.Option(
            help="CSV file with columns arm, state, ago (steps since), or arms.csv of `restive "
            "fit`; arms that are not in it were not seen lately, but those always seen must be. "
            "A sighting is a pull: the arm then moved by its `active` matrix.",
            show_default=False,
        ),
    ] = None,
    policy: Annotated[
        str,
        typer.Option(
            help="What decides: `restive plan` recommends one.", autocompletion=complete_mappings
        ),
    ] = "whittle",
    out: Annotated[Path, typer.Option(help="CSV file to write the list to.")] = Path("picks.csv"),
) -> None:
    """List the arms to pull now, with a reason each.

    Each arm is taken to be just what PROBLEM says. An agent (`restive live`) averages over all that
    an arm may be, so that its list is another where little is known.
    """
    from restive.files import require_target
    from restive.plan.picks import pick_arms, read_sightings, write_picks
    from restive.plan.policies.registry import as_policy
    from restive.plan.recommendation import arm_titles, last_states, nothing_seen
    from restive.problem.bandit import always_seen
    from restive.problem.problem_file import load_problem

    require_target(out, (".csv",))
    bandit = load_problem(problem)
    state = nothing_seen(bandit) if sightings is None else read_sightings(sightings, bandit)
    picks = pick_arms(bandit, as_policy(policy, bandit), state)
    write_picks(picks, out)
    shown = picks[:MOST_ROWS]
    rows = [
        [
            title,
            "-" if found.index is None else f"{found.index:.4f}",
            found.reason,
        ]
        for found, title in zip(
            shown, arm_titles(bandit, [found.arm for found in shown]), strict=True
        )
    ]
    print_table(
        f"pull {len(picks):,} of {bandit.num_arms:,} arms",
        ("arm", "index", "why"),
        rows,
        words=("arm",),
        prose=("why",),
    )
    lines = [f"written: {out}"]
    if len(picks) > MOST_ROWS:
        lines.insert(0, f"{len(picks) - MOST_ROWS:,} more are in the file")
    table, seen = sightings_file(problem), always_seen(bandit)
    if sightings is None:
        taken = "all arms are taken not to have been seen lately"
        if seen.all():
            taken = f"all arms are taken to be {last_states(bandit)}"
        elif seen.any():
            now = f"those that are always seen, which are taken to be {last_states(bandit)}"
            taken += f", but for {now}"
        lines.append(f"No sightings were given, so {taken}.")
    print_lines([*lines, _next(sightings is None, table, bool(seen.any()))])
    if table == NO_FILE or sightings is None:
        choice = "" if policy == "whittle" else f" --policy {quote(policy)}"
        given = NO_FILE if sightings is None else str(sightings)
        file = given if table == NO_FILE else table
        # a command that is broken into lines would not run
        print(f"  restive pick {quote(str(problem))}{choice} --sightings {quote(file)}")


def _next(unseen: bool, table: str, always: bool) -> str:
    """Say what one does with a list, and how one comes back with what was seen."""
    if table != NO_FILE:  # of a fit
        if unseen:
            return "With what the fit knows of them:"
        return (
            "Next: pull these, add what was seen to the log and fit again; or begin an agent, "
            "which keeps account of all that, with the last command that `restive fit` printed."
        )
    now = "; of arms that are always seen their state now" if always else ""
    return (
        "Next: pull these, and write what was seen into a CSV file with the columns arm, state and "
        f"ago (steps since: 1 for those just pulled, one more for the others{now}). The next list:"
    )
