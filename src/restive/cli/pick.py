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
            "fit`; arms that are not in it were not seen lately, but those always seen must be.",
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
    from restive.plan.recommendation import nothing_seen
    from restive.problem.problem_file import load_problem

    require_target(out, (".csv",))
    bandit = load_problem(problem)
    state = nothing_seen(bandit) if sightings is None else read_sightings(sightings, bandit)
    picks = pick_arms(bandit, as_policy(policy, bandit), state)
    write_picks(picks, out)
    rows = [
        [
            str(found.arm) if found.name is None else f"{found.arm} ({found.name})",
            "-" if found.index is None else f"{found.index:.4f}",
            found.reason,
        ]
        for found in picks[:MOST_ROWS]
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
    if sightings is None:
        table = sightings_file(problem)
        which = "" if table == NO_FILE else ", or as `restive fit` writes it"
        always = "arms that are always seen are taken to be in their last state, and all others "
        lines.append(
            "No sightings were given, so "
            f"{always if any(arm.always_seen for arm in bandit.arms) else 'all arms '}"
            "are taken not to have been seen lately. "
            f"With a file of the columns arm, state, ago (steps since){which}: "
            f"restive pick {quote(str(problem))} --sightings {quote(table)}"
        )
    print_lines(lines)
