"""`restive reproduce`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from restive.cli.progress import run_display, spinner
from restive.cli.study import going_on, tell
from restive.cli.tables import print_table

if TYPE_CHECKING:
    from restive.paper.runs import Reproduction

__all__ = ["reproduce"]


def reproduce(
    replications: Annotated[
        int | None,
        typer.Option(
            min=2, help="Replications of each experiment and mapping (default: 4000; quick: 200)."
        ),
    ] = None,
    seed: Annotated[int, typer.Option(min=0, help="The same seed gives the same numbers.")] = 0,
    out: Annotated[
        Path | None,
        typer.Option(help="Folder to write to (default: reproduction; quick: reproduction-quick)."),
    ] = None,
    threads: Annotated[
        int | None, typer.Option(min=1, help="Number of threads (default: one per processor).")
    ] = None,
    quick: Annotated[
        bool, typer.Option("--quick", help="Few replications: takes seconds.")
    ] = False,
) -> None:
    """Run the paper's experiments and check its claims.

    Writes one page with the figures and the claims.

    The exit status is 1 if the data contradict a claim.
    """
    from restive.paper.runs import QUICK_REPLICATIONS, REPLICATIONS
    from restive.paper.runs import reproduce as run_all

    if replications is None:
        replications = QUICK_REPLICATIONS if quick else REPLICATIONS
    if out is None:
        out = Path("reproduction-quick" if quick else "reproduction")
    with going_on(out):
        found = run_all(
            out,
            replications=replications,
            seed=seed,
            workers=threads,
            display=run_display,
            step=spinner,
            tell=tell,
        )
    _print_claims(found)
    if found.failed:
        raise typer.Exit(1)


def _print_claims(found: Reproduction) -> None:
    print_table(
        "claims of Section 6",
        ("claim", "paper", "here", "verdict"),
        [[claim.claim, claim.paper, claim.ours, claim.verdict] for claim in found.claims],
        words=("verdict",),
        prose=("claim", "paper", "here"),
    )
    print(f"{len(found.failed)} of {len(found.claims)} claims fail; the report: {found.page}")
