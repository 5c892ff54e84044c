"""`restive pick`: today's list."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from restive.cli.completion import complete_mappings
from restive.cli.tables import print_lines, print_table

__all__ = ["pick"]

MOST_ROWS = 200  # arms that are printed


def pick(
    problem: Annotated[
        Path,
        typer.Argument(metavar="PROBLEM", help="TOML file with [[arm]] tables, as for `plan`."),
    ],
    sightings: Annotated[
        Path | None,
        typer.Option(
            help="CSV file with columns arm, state, ago (steps since); arms that are not in it "
            "were not seen lately.",
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
    """List the arms to pull now, with a reason each."""
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
        lines.append(
            "No sightings were given, so this is the list for arms that nobody has seen lately. "
            "With a file of the columns arm, state, ago (steps since): "
            f"restive pick {problem} --sightings last.csv"
        )
    print_lines(lines)
