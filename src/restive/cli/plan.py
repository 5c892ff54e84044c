"""`restive plan`."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from restive.cli.progress import spinner

if TYPE_CHECKING:
    from restive.overview import Plan

__all__ = ["plan"]

MOST_ROWS = 200  # kinds of arms that are printed
MOST_RANGES = 300  # characters that say which arms are of a kind


def plan(
    problem: Annotated[Path, typer.Argument(help="TOML file with num_pulls and [[arm]] tables.")],
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON instead of tables.")] = False,
    index_table: Annotated[
        Path | None, typer.Option(help="Write all indices to this .csv or .npz file.")
    ] = None,
    plot: Annotated[
        Path | None,
        typer.Option(help="Draw index against elapsed time to this .png, .svg or .pdf."),
    ] = None,
    max_states: Annotated[
        int, typer.Option(min=1, help="Joint states up to which values are exact.")
    ] = 200_000,
    max_elapsed: Annotated[
        int | None,
        typer.Option(min=1, help="Ages told apart, for arms that mix very slowly (default: auto)."),
    ] = None,
    discount: Annotated[
        float,
        typer.Option(help="Discount of Whittle's index, for arms that have none without."),
    ] = 1.0,
    seed: Annotated[int, typer.Option(min=0, help="Seed of the simulations.")] = 0,
) -> None:
    """Tell what the arms are like, what each policy would earn, and the most that any could."""
    from restive.figures import FIGURE_SUFFIXES, matplotlib_figures, plot_indices
    from restive.files import require_target
    from restive.overview import TABLE_SUFFIXES, plan_bandit, write_index_table
    from restive.problem_file import load_problem

    # what can be wrong with the options is told before anything is computed
    if index_table is not None:
        require_target(index_table, TABLE_SUFFIXES)
    if plot is not None:
        require_target(plot, FIGURE_SUFFIXES)
        matplotlib_figures()
    bandit = load_problem(problem)
    with spinner("planning") as show:
        found = plan_bandit(
            bandit, discount=discount, max_states=max_states, max_elapsed=max_elapsed, seed=seed,
            progress=show,
        )  # fmt: skip
    if as_json:
        print(json.dumps(found.to_json(), indent=2))
    else:
        _print_plan(found)
    if index_table is not None:
        write_index_table(bandit, index_table, max_elapsed, discount)
    if plot is not None:
        plot_indices(bandit, plot, max_elapsed, discount)


def _print_plan(found: Plan) -> None:
    from rich.console import Console
    from rich.markup import escape
    from rich.table import Table

    console = Console(width=None if sys.stdout.isatty() else 120)
    arms = Table(title=f"{found.num_arms} arms, {found.num_pulls} pulled each step")
    for column in ("arms", "name"):
        arms.add_column(column)
    always = any(arm.own_reward != 0 for arm in found.arms)
    earned = ("pulled for ever", "by itself") if always else ("stationary reward",)
    for column in ("states", *earned, "mixing time", "indexable", "limiting index"):
        arms.add_column(column, justify="right")
    for arm in found.arms[:MOST_ROWS]:
        reward = arm.stationary_reward
        arms.add_row(
            _shortened(arm.arms),
            escape(arm.name or ""),
            str(arm.num_states),
            "depends on start" if reward is None else f"{reward:.6f}",
            *([f"{arm.own_reward:.6f}"] if always else []),
            "-" if arm.mixing_time is None else str(arm.mixing_time),
            "yes" if arm.indexable else "no",
            f"{arm.limiting_index:.6f}",
        )
    bound = found.relaxation_bound
    least = "bound: none, see below" if bound is None else f"no policy exceeds {bound:.6f}"
    title = f"average reward per step; {least}"
    if always:
        title += f"\nthe arms earn {found.own_reward:.6f} by themselves"
        title += "" if bound is None else f", pulls add at most {bound - found.own_reward:.6f}"
    policies = Table(title=title)
    policies.add_column("policy")
    for column in ("J", "±", *(["pulls add"] if always else []), "of the bound"):
        policies.add_column(column, justify="right")
    policies.add_column("method")
    notes = [f"bound: {found.note}"] if found.note else []
    if len(found.arms) > MOST_ROWS:
        rest = len(found.arms) - MOST_ROWS
        notes.append(f"{rest:,} more kinds of arms: --json and --index-table have them all")
    if found.discount < 1:
        notes.append(f"Whittle's index is that of the discount {found.discount:g}")
    for policy in found.policies:
        if policy.average_reward is None:
            policies.add_row(policy.policy, *["-"] * (3 + always), "none, see below")
        else:
            share = policy.share_of_bound
            policies.add_row(
                policy.policy,
                f"{policy.average_reward:.6f}",
                "0" if policy.stderr == 0 else f"{policy.stderr:.2g}",
                *([f"{policy.pulls_add:.6f}"] if always else []),
                "-" if share is None else f"{share:.2%}",
                policy.method,
            )
        if policy.note:
            notes.append(f"{policy.policy}: {policy.note}")
    console.print(arms)
    console.print(policies)
    for note in notes:
        console.print(note, highlight=False, markup=False)
    if found.hint:
        console.print(f"note: {found.hint}", highlight=False, markup=False)


def _shortened(ranges: str) -> str:
    """Return ranges of arms as far as a table has room for them."""
    return (
        ranges if len(ranges) <= MOST_RANGES else ranges[:MOST_RANGES].rsplit(",", 1)[0] + ", ..."
    )
