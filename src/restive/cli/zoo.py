"""`restive zoo`."""

from __future__ import annotations

from typing import Annotated

import typer

from restive.cli.completion import complete_instances
from restive.cli.tables import print_table

__all__ = ["zoo"]


def zoo(
    name: Annotated[
        str | None,
        typer.Argument(
            metavar="NAME", help="An instance to describe.", autocompletion=complete_instances
        ),
    ] = None,
    toml: Annotated[
        bool, typer.Option("--toml", help="Print its arms as a problem file for `plan`.")
    ] = False,
) -> None:
    """List the named instances, or describe one."""
    from restive.errors import ProblemError
    from restive.measure import zoo as instances
    from restive.problem.changing import ChangingBandit

    if name is None:
        known = [instances.load(name) for name in instances.names()]
        print_table(
            "instances: use their names in a study, or `restive zoo NAME`",
            ("name", "arms", "pulls", "what it is"),
            [[i.name, str(i.prior.num_arms), str(i.num_pulls), i.title] for i in known],
            words=("name",),
            prose=("what it is",),
        )
        return
    instance = instances.load(name)
    if toml:
        if instance.bandit is None:
            raise ProblemError(f"{instance.name}: its truth is drawn from the prior: no fixed arms")
        print(instance.bandit.to_toml(), end="")
        return
    truth = "drawn from the prior" if instance.bandit is None else "fixed"
    if instance.bandit is not None:
        truth += ", in the prior" if instance.truth_in_prior else ", not in the prior"
    if isinstance(instance.bandit, ChangingBandit):
        truth += f"; its arms change: {instance.bandit!r}"
    print(f"{instance.name}: {instance.title}")
    print(f"source: {instance.source}")
    print(f"arms: {instance.prior.num_arms}, pulls a step: {instance.num_pulls}")
    print(f"truth: {truth}; horizon: {instance.horizon:,}")
