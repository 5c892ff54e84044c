"""`restive plan`."""

from __future__ import annotations

import json
from pathlib import Path
from shlex import quote
from typing import TYPE_CHECKING, Annotated

import typer

from restive.cli.pick import NO_FILE, is_of_fit
from restive.cli.progress import spinner
from restive.cli.speech import flags_of, spoken
from restive.cli.tables import print_lines, print_table
from restive.errors import ProblemError, RestiveError

if TYPE_CHECKING:
    from restive.plan.summary import Plan, SeeingWorth
    from restive.problem.bandit import RestlessBandit

__all__ = ["plan"]

MOST_ROWS = 10  # kinds of arms that are printed
MOST_RANGES = 300  # characters that say which arms are of a kind
NOTHING_ADVISED = (
    "No recommendation: no policy has a J that is the same however the arms begin; the lines below "
    "say why."
)


def plan(
    problem: Annotated[
        Path,
        typer.Argument(
            metavar="PROBLEM",
            help="TOML file with [[arm]] tables; see `restive init`.",
        ),
    ],
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON instead of tables.")] = False,
    index_table: Annotated[
        Path | None, typer.Option(help="Write all indices to this .csv or .npz file.")
    ] = None,
    plot: Annotated[
        Path | None,
        typer.Option(help="Draw index against elapsed time to this .png, .svg or .pdf."),
    ] = None,
    max_states: Annotated[
        int, typer.Option(min=1, help="Compute values exactly up to this many joint states.")
    ] = 200_000,
    max_elapsed: Annotated[
        int | None,
        typer.Option(
            min=1, help="Ages to distinguish, for arms that mix very slowly (default: auto)."
        ),
    ] = None,
    discount: Annotated[
        float,
        typer.Option(help="Discount of Whittle's index, for arms without an average-reward index."),
    ] = 1.0,
    seed: Annotated[int, typer.Option(min=0, help="Seed of the simulations.")] = 0,
) -> None:
    """Compute what each policy earns, and how far from the best.

    Describes the arms, gives the long-run reward of each policy, and a bound that none exceeds.
    """
    from restive.files import require_target
    from restive.measure import zoo as instances
    from restive.pages.figures import FIGURE_SUFFIXES
    from restive.pages.looks import matplotlib_figures
    from restive.plan.summary import TABLE_SUFFIXES, plan_bandit, plot_indices, write_index_table
    from restive.problem.problem_file import load_problem

    # mistakes in the options are reported before anything is computed
    if index_table is not None:
        require_target(index_table, TABLE_SUFFIXES)
    if plot is not None:
        require_target(plot, FIGURE_SUFFIXES)
        matplotlib_figures()
    if not problem.exists() and str(problem) in instances.names():
        raise ProblemError(
            f"{problem} is an instance of the zoo, and plan takes files: restive zoo {problem} "
            f"--toml > {problem}.toml writes one"
        )
    bandit = load_problem(problem)
    try:
        with spinner("planning") as show:
            found = plan_bandit(
                bandit, discount=discount, max_states=max_states, max_elapsed=max_elapsed,
                seed=seed, progress=show,
            )  # fmt: skip
    except RestiveError as error:
        raise type(error)(_with_flags(str(error))) from None
    if as_json:
        print(json.dumps(found.to_json(), indent=2))
    else:
        _print_plan(found, bandit, problem)
    if index_table is not None:
        write_index_table(bandit, index_table, max_elapsed, discount)
    if plot is not None:
        plot_indices(bandit, plot, max_elapsed, discount)
    written = [str(path) for path in (index_table, plot) if path is not None]
    if written and not as_json:
        print_lines([f"written: {', '.join(written)}"])


def _print_plan(found: Plan, bandit: RestlessBandit, problem: Path) -> None:
    """Print what it comes to, what that rests on, and the command that goes on from there."""
    always = any(arm.own_reward != 0 for arm in found.arms)
    _print_recommendation(found, bandit, problem)
    _print_arms(found, always)
    _print_policies(found, always)
    print_lines([spoken(note, flags_of(plan)) for note in _notes(found)])
    advised = found.recommendation
    if advised is not None and advised.matters and bandit.num_pulls < bandit.num_arms:
        choice = "" if advised.policy == "whittle" else f" --policy {advised.policy}"
        print_lines(["Today's list, from what was seen:"])
        asked = f"{quote(str(problem))}{choice} --sightings {NO_FILE}"
        # a command that is broken into lines would not run
        print(f"  restive pick {quote(str(problem.parent)) if is_of_fit(problem) else asked}")


def _print_recommendation(found: Plan, bandit: RestlessBandit, problem: Path) -> None:
    from restive.plan.recommendation_words import recommendation_sentences

    advised = found.recommendation
    if advised is None:
        print_lines([NOTHING_ADVISED, ""])
        return
    lines = recommendation_sentences(advised, bandit)
    if is_of_fit(problem):
        lines.insert(
            0,
            "These arms are estimates of a fit, and what follows takes them as certain. Whether "
            f"they are, and so what to do, says {problem.with_name('summary.html')}.",
        )
    print_lines([*lines, ""])


def _print_arms(found: Plan, always: bool) -> None:
    from restive.arguments import counted

    some_always = any(arm.seen == "always" for arm in found.arms)
    some_wait = any(arm.limiting_index is not None for arm in found.arms)
    earned = ("always pulled", "by itself") if always else ("stationary reward",)
    rows = [
        [
            _shortened(arm.arms),
            arm.name or "",
            str(arm.num_states) if arm.states is None else ", ".join(arm.states),
            *([arm.seen] if some_always else []),
            "depends on start" if arm.stationary_reward is None else f"{arm.stationary_reward:.6f}",
            *([f"{arm.own_reward:.6f}"] if always else []),
            "-" if arm.mixing_time is None else str(arm.mixing_time),
            "yes" if arm.indexable else "no",
            *(["-" if arm.limiting_index is None else f"{arm.limiting_index:.6f}"] * some_wait),
        ]
        for arm in found.arms[:MOST_ROWS]
    ]
    seen = ["seen"] if some_always else []
    limit = ["limiting index"] if some_wait else []
    rest = len(found.arms) - MOST_ROWS
    more = f"{rest:,} more kinds of arms: --json and --index-table FILE have them all"
    named = ["states"] if any(arm.states for arm in found.arms) else []
    print_table(
        f"{counted(found.num_arms, 'arm')}, {found.num_pulls:,} pulled each step",
        ("arms", "name", "states", *seen, *earned, "mixing time", "indexable", *limit),
        rows,
        words=("arms", "name", "seen", *named),
        drop=("mixing time", "indexable", "states", "limiting index"),
        caption=more if rest > 0 else "",
        elsewhere=" and with --json",
    )


def _print_policies(found: Plan, always: bool) -> None:
    bound = found.relaxation_bound
    least = "bound: none, see below" if bound is None else f"no policy exceeds {bound:.6f}"
    title = f"average reward per step; {least}"
    if always:
        title += f"\nthe arms earn {found.own_reward:.6f} by themselves"
        title += "" if bound is None else f", pulls add at most {bound - found.own_reward:.6f}"
    rows = []
    for policy in found.policies:
        if policy.average_reward is None:
            rows.append([policy.policy, *["-"] * (3 + always), "none, see below"])
            continue
        share = policy.share_of_bound
        rows.append(
            [
                policy.policy,
                f"{policy.average_reward:.6f}",
                "0" if policy.stderr == 0 else f"{policy.stderr:.2g}",
                *([f"{policy.pulls_add:.6f}"] if always else []),
                "-" if share is None else f"{share:.2%}",
                policy.method or "",
            ]
        )
    # where arms pay by themselves a share of the whole bound would say nothing
    added, of_what = (["pulls add"], "of the most") if always else ([], "of the bound")
    explained = {}
    if any(policy.stderr for policy in found.policies):
        explained["±"] = "± is the standard error of J where it was simulated."
    if always:
        explained[of_what] = f"{of_what}: what pulls add, as a share of the most that they can add."
    print_table(
        title,
        ("policy", "J", "±", *added, of_what, "method"),
        rows,
        words=("policy", "method"),
        drop=("method", of_what),
        explained=explained,
        elsewhere=" and with --json",
    )


def _notes(found: Plan) -> list[str]:
    from restive.learn.advice import learner_sentence

    notes = [f"bound: {found.note}"] if found.note else []
    if found.seeing is not None:
        notes.append(_seeing(found.seeing, found.relaxation_bound))
    if found.discount < 1:
        notes.append(f"Whittle's index is that of the discount {found.discount:g}")
    if found.simulated:
        notes.append(f"J was simulated: {found.simulated}")
    notes += [f"{policy.policy}: {policy.note}" for policy in found.policies if policy.note]
    notes = [_with_flags(note) for note in notes]
    # plan knows the arms; who has to learn them first. What is always seen is no rare look
    rare = all(arm.seen == "pulled" for arm in found.arms)
    if rare and (learnt := learner_sentence(found.num_arms, found.num_pulls)):
        notes.append(f"learning such arms: {learnt}")
    return [*notes, *([f"note: {found.hint}"] if found.hint else [])]


def _seeing(seeing: SeeingWorth, bound: float | None) -> str:
    """Say what it would be worth to see all arms in every step."""
    error = f" ± {seeing.half_width:.1%}" if seeing.half_width else ""
    now = "" if bound is None else f", {bound:.6f} as they are seen now"
    return (
        f"seeing everyone would add at most {seeing.added:.1%}{error} to {seeing.policy} "
        f"(no policy exceeds {seeing.bound:.6f} if all arms are always seen{now})"
    )


def _with_flags(words: str) -> str:
    """Return advice in this command's words: its options for arguments of functions."""
    for argument, flag in (
        ("give max_elapsed, the same wherever the arm is used,", "pass --max-elapsed"),
        ("give max_elapsed = ", "pass --max-elapsed "),
        ("max_elapsed", "--max-elapsed"),
        ("max_states", "--max-states"),
        ("a discount below 1", "--discount below 1"),
    ):
        words = words.replace(argument, flag)
    return words


def _shortened(ranges: str) -> str:
    """Return ranges of arms as far as a table has room for them."""
    return (
        ranges if len(ranges) <= MOST_RANGES else ranges[:MOST_RANGES].rsplit(",", 1)[0] + ", ..."
    )
