"""`restive zoo`."""

from __future__ import annotations

import sys
from typing import Annotated

import typer

__all__ = ["zoo"]


def zoo(
    name: Annotated[str | None, typer.Argument(help="An instance to describe.")] = None,
    toml: Annotated[
        bool, typer.Option("--toml", help="Print its arms as a problem file for `plan`.")
    ] = False,
) -> None:
    """List the named instances, or describe one."""
    from rich.console import Console
    from rich.table import Table

    from restive import zoo as instances
    from restive.errors import ProblemError
    from restive.problem_file import problem_to_toml

    console = Console(width=None if sys.stdout.isatty() else 120)
    if name is None:
        table = Table(title="instances: use their names in a study, or `restive zoo NAME`")
        for column in ("name", "arms", "pulls", "what it is"):
            table.add_column(column)
        for known in instances.names():
            instance = instances.load(known)
            table.add_row(
                known, str(instance.prior.num_arms), str(instance.num_pulls), instance.title
            )
        console.print(table)
        return
    instance = instances.load(name)
    if toml:
        if instance.bandit is None:
            raise ProblemError(f"{instance.name}: its truth is drawn from the prior: no fixed arms")
        print(problem_to_toml(instance.bandit), end="")
        return
    truth = "drawn from the prior" if instance.bandit is None else "fixed"
    if instance.bandit is not None:
        truth += ", in the prior" if instance.truth_in_prior else ", not in the prior"
    print(f"{instance.name}: {instance.title}")
    print(f"source: {instance.source}")
    print(f"arms: {instance.prior.num_arms}, pulls a step: {instance.num_pulls}")
    print(f"truth: {truth}; horizon: {instance.horizon:,}")
