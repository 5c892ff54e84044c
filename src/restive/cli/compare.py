"""`restive compare`."""

from __future__ import annotations

from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, NamedTuple

import typer

from restive.arguments import bytes_in_words, counted, duration, require_memory
from restive.cli.completion import complete_instances, complete_learners, complete_mappings
from restive.cli.progress import spinner
from restive.cli.study import (
    Executor,
    Scheduler,
    TlsCaFile,
    TlsCert,
    TlsKey,
    Workers,
    run_shown,
    tell,
    where_of,
)
from restive.cli.tables import print_lines, print_table
from restive.errors import ProblemError, RestiveError

if TYPE_CHECKING:
    from restive.studies.spec import Study
    from restive.studies.summary import CaseSummary

__all__ = ["compare"]

LONG = 60.0  # seconds of a run that are told beforehand
MANY_STEPS = 100_000  # of all replications together; to try out how long fewer take may take longer
TRIAL_STEPS, TRIAL_SECONDS = 100, 1.0  # of a learner that is tried out


def compare(
    instances: Annotated[
        list[str],
        typer.Argument(
            metavar="PROBLEM...",
            help="Zoo instances (see `restive zoo`), or TOML files of your own: problems with "
            "[[arm]] tables, or studies.",
            autocompletion=complete_instances,
        ),
    ],
    learners: Annotated[
        str | None,
        typer.Option(
            help="Names, separated by commas (default: all that fit).",
            autocompletion=complete_learners,
        ),
    ] = None,
    policy_mapping: Annotated[
        str | None,
        typer.Option(
            help="What learners with a posterior play, and what regret is measured against "
            "(default: whittle).",
            autocompletion=complete_mappings,
        ),
    ] = None,
    horizon: Annotated[
        int | None,
        typer.Option(min=2, help="Steps (default: the instance's own, 2000 for a problem file)."),
    ] = None,
    replications: Annotated[
        int | None, typer.Option(min=2, help="Replications of every learner (default: 200).")
    ] = None,
    seed: Annotated[
        int | None, typer.Option(min=0, help="The same seed gives the same numbers (default: 0).")
    ] = None,
    out: Annotated[
        Path | None,
        typer.Option(
            help="Results folder: new, or one to continue (default: comparison, or comparison-2 "
            "and so on where that holds another study).",
            show_default=False,
        ),
    ] = None,
    executor: Executor = "threads",
    workers: Workers = None,
    scheduler: Scheduler = None,
    tls_ca_file: TlsCaFile = None,
    tls_cert: TlsCert = None,
    tls_key: TlsKey = None,
) -> None:
    """Compare learners in the same worlds.

    Ranks them by regret and reports which differences the data support. Where PROBLEM is a study,
    its learners, mappings, replications and seed are taken, unless options say otherwise.
    """
    from restive.pages.looks import matplotlib_figures
    from restive.paper.comparison_study import comparison_study
    from restive.studies.report.study_page import write_report
    from restive.studies.summary import load_results

    where = where_of(executor, workers, scheduler, tls_ca_file, tls_cert, tls_key)
    matplotlib_figures()  # the page needs it: better said now than after the run
    named = None if learners is None else _names(learners)
    study = comparison_study(instances, named, policy_mapping, horizon, replications, seed, tell)
    if study.replications < 2:
        raise ProblemError("a comparison takes at least 2 replications: add --replications 200")
    folder = _own_folder(study) if out is None else out
    if scheduler is None and not folder.exists():
        with spinner("estimating how long this takes"):
            long = _what_it_takes(study, workers)
        if long:
            tell(long)
    ledger = run_shown(study, folder, where)
    with spinner("comparing"):
        rankings = _shown(load_results(ledger.folder))
    for ranking in rankings:  # not while something moves on the screen
        _print_ranking(ranking)
    with spinner("drawing"):
        page = write_report(ledger.folder)
    print(f"the report: {page}")


def _what_it_takes(study: Study, workers: int | None) -> str:
    """Say what a long run takes, and which flags take less; a short one is not tried out.

    What would not fit into the memory is refused.
    """
    from restive.learn.learners import describe
    from restive.studies.timing import memory_bytes, seconds_per_step
    from restive.studies.work import result_bytes
    from restive.threads import available_threads

    processors = workers or available_threads()
    memory = max(memory_bytes(case, study.replications, processors) for case in study.cases)
    require_memory(
        memory,
        f"a comparison on {counted(max(case.settings.num_arms for case in study.cases), 'arm')}",
        "pass --workers 1 or a shorter --horizon",
    )
    if sum(case.settings.horizon for case in study.cases) * study.replications < MANY_STEPS:
        return ""
    spent = dict[str, float]()  # by learner
    for case in study.cases:
        step = seconds_per_step(case.settings, with_oracle=True, most_steps=TRIAL_STEPS)
        if 2 * TRIAL_STEPS * step < TRIAL_SECONDS:  # later steps may take less: episodes are longer
            most_steps = int(TRIAL_SECONDS / step)
            step = seconds_per_step(case.settings, with_oracle=True, most_steps=most_steps)
        seconds = step * case.settings.horizon * study.replications / processors
        name = describe(case.settings.learner())
        spent[name] = spent.get(name, 0.0) + seconds
    if sum(spent.values()) < LONG:
        return ""
    slowest = max(spent, key=lambda name: spent[name])
    alone = f", of which {slowest} takes {duration(spent[slowest])}" if len(spent) > 1 else ""
    disk = sum(result_bytes(case) * study.replications for case in study.cases)
    return (
        f"this takes about {duration(sum(spent.values()))}{alone}, at most "
        f"{bytes_in_words(memory)} of memory and {bytes_in_words(disk)} on disk; fewer "
        "--replications, a shorter --horizon and fewer --learners take less"
    )


def _own_folder(study: Study) -> Path:
    """Return the first numbered folder that is new or in which this very study was begun."""
    for number in count(1):
        folder = Path("comparison" if number == 1 else f"comparison-{number}")
        if not folder.exists() or _is_of(folder, study):
            if number > 1:
                tell(f"the results go to {folder}; folders before it hold other studies")
            return folder
    raise AssertionError("numbers do not end")


def _is_of(folder: Path, study: Study) -> bool:
    from restive.studies.ledger import Ledger, can_continue

    try:
        return can_continue(Ledger.open(folder), study)
    except RestiveError:  # something else, or damaged
        return False


def _names(learners: str) -> list[str]:
    from restive.learn.learner_text import names_in

    named = names_in(learners)
    if not named:
        raise ProblemError(f"--learners: names separated by commas, got {learners!r}")
    return named


class _Shown(NamedTuple):
    """A ranking as it is printed; all that takes time is done."""

    title: str
    rows: list[list[str]]
    caption: str
    about_bound: str
    remarks: list[str]
    won: list[tuple[str, str]]
    verdict: str


def _shown(found: list[CaseSummary]) -> list[_Shown]:
    from restive.studies.paired_differences import rankings
    from restive.studies.report.ranking import (
        bound_caption,
        ranking_caption,
        ranking_remarks,
        ranking_rows,
        ranking_verdict,
        victories,
    )

    return [
        _Shown(
            ranking.point or "learners",
            ranking_rows(ranking),
            ranking_caption(ranking),
            bound_caption(ranking),
            [*ranking_remarks(ranking), *_suited(ranking.cases[0])],
            victories(ranking) if ranking.pairs else [],
            ranking_verdict(ranking) if ranking.pairs else "",
        )
        for ranking in rankings(found)
    ]


def _print_ranking(shown: _Shown) -> None:
    from restive.studies.report.ranking import HEADER

    print_table(
        shown.title,
        HEADER,
        shown.rows,
        words=("learner",),
        drop=("us a step", "episodes", "against the bound"),
        caption=shown.caption,
        explained={"against the bound": shown.about_bound},
    )
    print_lines(shown.remarks)
    if shown.won:
        print_table(
            "", ("learner", "beats"), shown.won, words=("learner",), prose=("beats",), ruled=True
        )
    if shown.verdict:
        print_lines([shown.verdict])


def _suited(found: CaseSummary) -> list[str]:
    """Say which learner suits few looks, whether it is compared or not."""
    from restive.learn.advice import learner_sentence

    _, prior, num_pulls = found.case.settings.systems()
    if any(prior.typical(k).always_seen for k in range(prior.num_arms)):
        return []  # however few are pulled, there is more to see
    sentence = learner_sentence(prior.num_arms, num_pulls, int(found.times[-1]))
    return [f"Few looks: {sentence}."] if sentence else []
