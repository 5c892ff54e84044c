"""Running the paper's two studies, as far as their folder lacks them."""

from __future__ import annotations

import os
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, replace
from importlib.resources import files
from pathlib import Path
from typing import Any

from restive.arguments import checked_count, checked_seed
from restive.errors import RestiveError
from restive.pages.looks import matplotlib_figures
from restive.paper.claims import Claim, check_claims
from restive.paper.page import MARKER, STUDIES, paper_results, write_json, write_page
from restive.paper.theory_section import theory_numbers
from restive.problem.toml_text import parse_toml
from restive.studies.ledger import Ledger
from restive.studies.runner import Progress, run_study
from restive.studies.spec import Study, study_from_data

__all__ = ["Reproduction", "paper_study", "reproduce"]

REPLICATIONS = 4000
QUICK_REPLICATIONS = 200
THEORY_REPLICATIONS = 400  # of the small instance whose regret is taken apart

Display = Callable[[str], AbstractContextManager[Callable[[Progress], None]]]
Step = Callable[[str], AbstractContextManager[Any]]


@dataclass(frozen=True)
class Reproduction:
    """What `reproduce` found."""

    claims: list[Claim]
    page: Path

    @property
    def failed(self) -> list[Claim]:
        """Claims that the data contradict."""
        return [claim for claim in self.claims if claim.verdict == "fails"]


def paper_study(name: str, seed: int = 0) -> Study:
    """Return one of the paper's two studies, "bayesian" or "frequentist"."""
    text = (files("restive.paper") / f"{name}.toml").read_text(encoding="utf-8")
    return study_from_data(parse_toml(text) | {"seed": seed}, text)


def reproduce(
    out: Path,
    *,
    replications: int = REPLICATIONS,
    seed: int = 0,
    workers: int | None = None,
    display: Display = lambda title: nullcontext(lambda progress: None),
    step: Step = lambda title: nullcontext(),
    tell: Callable[[str], None] = lambda line: None,
) -> Reproduction:
    """Run both studies as far as they are lacking, check the claims and write the page.

    Parameters
    ----------
    out
        A new or empty folder, or that of an earlier reproduction, which is then continued.
    replications, seed
        Of each experiment and mapping.
    workers
        Threads; by default one per processor. The numbers do not depend on it.
    display, step
        Given a title, context managers that show how far a study is, and what is being done.
    tell
        Called with a line for a person.
    """
    checked_count(replications, "replications", 2)
    checked_seed(seed)
    matplotlib_figures()  # told now, not after the runs
    studies = {name: paper_study(name, seed) for name in STUDIES}
    _require_own(out)
    # a folder that holds more already keeps them, and then both studies have as many
    there = [Ledger.open(out / name) for name in STUDIES if (out / name / "manifest.json").exists()]
    replications = max(replications, *(ledger.study.replications for ledger in there), 0)
    for name, study in studies.items():
        if not out.is_dir():  # not made anew: what is done is elsewhere
            raise RestiveError(f"{out}: was moved or removed while this was running")
        with display(study.title) as progress:
            run_study(
                replace(study, replications=replications), out / name,
                workers=workers, progress=progress, tell=tell,
            )  # fmt: skip
    with step("theory"):
        bayesian, frequentist = paper_results(out)
        numbers = theory_numbers(
            bayesian, frequentist, min(replications, THEORY_REPLICATIONS), seed
        )
        write_json(out / MARKER, {"restive reproduction": 1, "theory": numbers})
    with step("figures and page"):
        target = write_page(out)
    return Reproduction(check_claims(bayesian, frequentist), target)


def _require_own(out: Path) -> None:
    """Raise if a folder holds something else, or cannot be used."""
    try:
        names = set(os.listdir(out)) if out.exists() else set()
        foreign = any(
            not (out / name / "manifest.json").exists()
            and any(inner != "lock" and inner[0] != "." for inner in os.listdir(out / name))
            for name in names & set(STUDIES)
        )
        if foreign or (names and not names & {MARKER, *STUDIES}):
            raise RestiveError(
                f"{out}: holds something else already; name a new or an empty folder with --out"
            )
        out.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise RestiveError(f"{out}: cannot be used: {error.strerror}") from None
