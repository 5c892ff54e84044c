"""`restive pick`: today's list."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from shlex import quote
from typing import TYPE_CHECKING, Annotated

import typer

from restive.cli.completion import complete_mappings
from restive.cli.tables import print_lines, print_table
from restive.errors import ProblemError

if TYPE_CHECKING:
    from restive.plan.picks import Pick

__all__ = ["NO_FILE", "is_of_fit", "pick"]

MOST_ROWS = 200  # arms that are printed
NO_FILE = "last.csv"  # stands for one that there is none of yet


def is_of_fit(problem: Path) -> bool:
    """Whether a problem is what a fit wrote beside its prior."""
    return problem.name == "problem.toml" and problem.with_name("prior.json").exists()


def pick(
    problem: Annotated[
        Path,
        typer.Argument(
            metavar="PROBLEM",
            help="TOML file with [[arm]] tables, as for `plan`; or the folder that `restive fit` "
            "wrote.",
        ),
    ],
    sightings: Annotated[
        Path | None,
        typer.Option(
            help="CSV file with columns arm, state, ago (steps since); arms that are not in it "
            "were not seen lately, but those always seen must be. A sighting is a pull: the arm "
            "then moved by its `active` matrix. A fit knows its own.",
            show_default=False,
        ),
    ] = None,
    policy: Annotated[
        str,
        typer.Option(
            help="What decides: `restive plan` recommends one.", autocompletion=complete_mappings
        ),
    ] = "whittle",
    pulls: Annotated[
        int | None, typer.Option(min=1, help="Pulls now (default: as PROBLEM says).")
    ] = None,
    out: Annotated[Path, typer.Option(help="CSV file to write the list to.")] = Path("picks.csv"),
) -> None:
    """List the arms to pull now, with a reason each.

    Each arm is taken to be just what a problem file says. Of the folder of a fit, the mean index
    over all that an arm may be decides, as in an agent (`restive live`).
    """
    from restive.files import require_target
    from restive.plan.picks import pick_arms, read_sightings, write_picks
    from restive.plan.policies.registry import as_policy
    from restive.plan.recommendation import arm_titles, last_states, nothing_seen
    from restive.problem.bandit import RestlessBandit, always_seen
    from restive.problem.problem_file import load_problem

    require_target(out, (".csv",))
    if problem.is_dir():
        _pick_of_fit(problem, sightings, policy, pulls, out)
        return
    if is_of_fit(problem):
        raise ProblemError(
            f"{problem} is of arms as they are on average, for `restive plan` alone; the list: "
            f"restive pick {quote(str(problem.parent))}"
        )
    bandit = load_problem(problem)
    if pulls is not None:
        bandit = RestlessBandit(bandit.arms, pulls)
    state = nothing_seen(bandit) if sightings is None else read_sightings(sightings, bandit)
    picks = pick_arms(bandit, as_policy(policy, bandit), state)
    write_picks(picks, out)
    titles = arm_titles(bandit, [found.arm for found in picks[:MOST_ROWS]])
    _print_picks(picks[:MOST_ROWS], titles, bandit.num_arms)
    lines = [f"written: {out}"]
    if len(picks) > MOST_ROWS:
        lines.insert(0, f"{len(picks) - MOST_ROWS:,} more are in the file")
    seen = always_seen(bandit)
    if sightings is None:
        taken = "all arms are taken not to have been seen lately"
        if seen.all():
            taken = f"all arms are taken to be {last_states(bandit)}"
        elif seen.any():
            now = f"those that are always seen, which are taken to be {last_states(bandit)}"
            taken += f", but for {now}"
        lines.append(f"No sightings were given, so {taken}.")
    now = "; of arms that are always seen their state now" if seen.any() else ""
    lines.append(
        "Next: pull these, and write what was seen into a CSV file with the columns arm, state and "
        f"ago (steps since: 1 for those just pulled, one more for the others{now}). The next list:"
    )
    print_lines(lines)
    choice = "" if policy == "whittle" else f" --policy {quote(policy)}"
    choice += "" if pulls is None else f" --pulls {pulls}"
    given = NO_FILE if sightings is None else str(sightings)
    # a command that is broken into lines would not run
    print(f"  restive pick {quote(str(problem))}{choice} --sightings {quote(given)}")


def _pick_of_fit(
    folder: Path, sightings: Path | None, policy: str, pulls: int | None, out: Path
) -> None:
    """List the arms that an agent would pull first where the log of a fit ends."""
    from restive.logs.lists import picks_of_prior
    from restive.logs.prior_file import load_prior
    from restive.plan.picks import write_picks

    if sightings is not None or policy != "whittle":
        raise ProblemError(
            f"{folder} knows when each arm was last seen, and goes by the mean of Whittle's index: "
            "leave --sightings and --policy out"
        )
    found = load_prior(folder / "prior.json")
    picks = picks_of_prior(found, pulls)
    write_picks(picks, out)
    _print_picks(picks[:MOST_ROWS], [str(one.name) for one in picks], len(found.names))
    lines = [f"written: {out}"]
    if len(picks) > MOST_ROWS:
        lines.insert(0, f"{len(picks) - MOST_ROWS:,} more are in the file")
    print_lines(
        [
            *lines,
            "Next: pull these, add what was seen to the log and fit again; or begin an agent, "
            "which keeps account of all that, with the last command that `restive fit` printed.",
        ]
    )


def _print_picks(picks: Sequence[Pick], titles: Sequence[str], num_arms: int) -> None:
    print_table(
        f"pull {len(picks):,} of {num_arms:,} arms",
        ("arm", "index", "why"),
        [
            [title, "-" if found.index is None else f"{found.index:.4f}", found.reason]
            for found, title in zip(picks, titles, strict=False)
        ],
        words=("arm",),
        prose=("why",),
    )
