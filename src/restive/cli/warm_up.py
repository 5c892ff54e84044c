"""`restive warm-up`."""

from __future__ import annotations

from time import monotonic
from typing import Annotated

import typer

__all__ = ["warm_up"]


def warm_up(
    chores: Annotated[
        list[str] | None,
        typer.Argument(help="What to compile for: plans, regret, agents, ... (default: all)."),
    ] = None,
) -> None:
    """Compile everything now, so that later commands start fast.

    Takes one to three minutes, once after each installation.
    """
    from restive.arguments import duration
    from restive.cli.chores import CHORES, compile_kernels
    from restive.cli.progress import bar

    wanted = chores or list(CHORES)
    began = monotonic()
    with bar("compiling, once") as show:
        done: list[str] = []

        def tell(chore: str) -> None:
            done.append(chore)
            show(chore, len(done) / len(wanted))

        compile_kernels(wanted, tell)
    print(f"compiled in {duration(monotonic() - began)}; nothing will need to compile again")
