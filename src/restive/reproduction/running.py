"""Running the reproduction and putting its page together."""

from __future__ import annotations

import json
import os
import shlex
from collections import Counter
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from dataclasses import asdict, dataclass, replace
from importlib.resources import files
from pathlib import Path
from typing import Any

from restive.arguments import checked_count, checked_seed
from restive.errors import RestiveError
from restive.experiment import CaseSummary, Ledger, Study, load_results, run_study
from restive.experiment.running import Progress
from restive.experiment.spec import study_from_data
from restive.figures import matplotlib_figures
from restive.files import replacing, require_target
from restive.problem_file import parse_toml
from restive.report.charts import Naming
from restive.report.study import READING, how_it_was_run, results_table
from restive.report.verdicts import study_verdict
from restive.reproduction.claims import Claim, check_claims
from restive.reproduction.paper_charts import page_figures, write_figures
from restive.reproduction.theory_section import theory_numbers, theory_section
from restive.style.page import folded, page, paragraph, section, table

__all__ = ["Reproduction", "is_reproduction", "paper_study", "render", "reproduce"]

REPLICATIONS = 4000
QUICK_REPLICATIONS = 200
THEORY_REPLICATIONS = 400  # of the small instance whose regret is taken apart
STUDIES = ("bayesian", "frequentist")
MARKER = "reproduction.json"
PAGE = "report.html"

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
    text = (files("restive.reproduction") / f"{name}.toml").read_text(encoding="utf-8")
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
        A new or empty folder, or that of an earlier reproduction, which is then gone on with.
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
        with display(study.title) as progress:
            run_study(
                replace(study, replications=replications), out / name,
                workers=workers, progress=progress, tell=tell,
            )  # fmt: skip
    with step("theory"):
        bayesian, frequentist = _results(out)
        numbers = theory_numbers(
            bayesian, frequentist, min(replications, THEORY_REPLICATIONS), seed
        )
        _write_json(out / MARKER, {"restive reproduction": 1, "theory": numbers})
    with step("figures and page"):
        target = render(out)
    return Reproduction(check_claims(bayesian, frequentist), target)


def is_reproduction(folder: Path) -> bool:
    """Whether a folder is that of a reproduction that has come to its end."""
    return (folder / MARKER).is_file()


def render(folder: Path, path: Path | None = None) -> Path:
    """Write figures, claims and the page of a finished reproduction; return the page's path."""
    target = folder / PAGE if path is None else path
    require_target(target, (".html",))
    try:
        theory = json.loads((folder / MARKER).read_text(encoding="utf-8"))["theory"]
    except (OSError, ValueError, KeyError, TypeError):
        raise RestiveError(f"{folder / MARKER}: damaged; run `restive reproduce` again") from None
    bayesian, frequentist = _results(folder)
    ledgers = [Ledger.open(folder / name) for name in STUDIES]
    wanted = max(ledger.study.replications for ledger in ledgers)
    if any(found.replications < wanted for found in (*bayesian, *frequentist)):
        raise RestiveError(
            f"{folder}: not complete; run `restive reproduce --replications {wanted}` again"
        )
    claims = check_claims(bayesian, frequentist)
    _write_json(folder / "claims.json", [asdict(claim) for claim in claims])
    write_figures(bayesian, frequentist, folder)
    seed = ledgers[0].manifest["study"]["seed"]
    command = (
        f"restive reproduce --replications {wanted} --seed {seed} --out {shlex.quote(str(folder))}"
    )
    growth, lead = study_verdict(bayesian, Naming(bayesian))
    text = page(
        "Thompson sampling in non-episodic restless bandits: a reproduction",
        "restive · reproduction of Jung, Abeille and Tewari, “Thompson Sampling in Non-Episodic "
        "Restless Bandits”, Section 6",
        _verdict(claims),
        [
            f"{growth} {lead[0]}",
            f"Found with {wanted:,} replications of each experiment (the paper: 100 or more). A "
            "claim holds or fails when its 95% interval says so; undecided means too few "
            "replications.",
        ],
        [
            *page_figures(bayesian, frequentist),
            section("The claims, by their place in the paper", *_claims_tables(claims)),
            section(
                "What differs from the paper, and why",
                *_differences(bayesian, frequentist, claims),
            ),
            theory_section(theory),
            section(
                "All results, and how to run it again",
                folded("Bayesian experiment", results_table(bayesian), paragraph(READING, "note")),
                folded("Frequentist experiment", results_table(frequentist)),
                how_it_was_run(ledgers, command),
            ),
        ],
    )
    with replacing(target) as temporary:
        temporary.write_text(text, encoding="utf-8")
    return target


def _results(folder: Path) -> tuple[list[CaseSummary], list[CaseSummary]]:
    bayesian, frequentist = (load_results(folder / name) for name in STUDIES)
    return bayesian, frequentist


def _verdict(claims: list[Claim]) -> str:
    """Return how many claims hold, in a sentence."""
    counts: Counter[str] = Counter(claim.verdict for claim in claims)
    rest = [
        f"{counts[word]} {verb}"
        for word, verb in (
            ("fails", "fails" if counts["fails"] == 1 else "fail"),
            ("undecided", "is undecided" if counts["undecided"] == 1 else "are undecided"),
        )
        if counts[word]
    ]
    told = f"{counts['holds']} of {len(claims)} claims hold"
    return f"{'; '.join([told, ', '.join(rest)]) if rest else told}."


def _claims_tables(claims: list[Claim]) -> list[str]:
    """Return a folded table per place in the paper, open where a claim does not hold."""
    places: dict[str, list[Claim]] = {}
    for claim in claims:
        places.setdefault(claim.place, []).append(claim)
    header = ("claim", "paper", "here", "verdict")
    return [
        folded(
            place,
            table(header, [(c.claim, c.paper, c.ours, c.verdict) for c in made], stacked=True),
            about=_verdict(made).rstrip("."),
            unfolded=any(claim.verdict != "holds" for claim in made),
        )
        for place, made in places.items()
    ]


def _differences(
    bayesian: list[CaseSummary], frequentist: list[CaseSummary], claims: list[Claim]
) -> list[str]:
    slopes = ", ".join(f"{f.slope.value:.2f}" for f in bayesian if f.slope is not None)
    whittle = next(found for found in frequentist if found.case.mapping == "whittle")
    assert whittle.truth_weights is not None
    weights = ", ".join(f"{weight:.3f}" for weight in whittle.truth_weights.mean[-1])

    def all_hold(start: str) -> bool:
        return all(claim.verdict == "holds" for claim in claims if claim.claim.startswith(start))

    near = "ours lie within that" if all_hold("E J of") else "see the claims above for ours"
    slower = (
        ", that is, slower than the square root that the paper draws and proves as a bound"
        if all_hold("regret grows no faster")
        else ""
    )
    rise = (
        "They rise throughout, as the paper says"
        if all_hold("weight of arm")
        else "See the claims above"
    )
    texts = [
        "E J: the paper's figures come from about 100 drawn systems, whose standard error is "
        f"about 0.025; {near}. For the best fixed arms J of every drawn system is "
        "exact; for the others it is what the policy earned in the second half of its run.",
        "Growth: over the last decade of time the fitted slopes are "
        f"{slopes or 'not fitted'}{slower}.",
        f"Posterior: with Whittle's mapping the weights of the four truths at T are {weights}. "
        f"{rise}; those of arms that are seldom pulled are still "
        "on their way to one at T = 10,000.",
        "Regret is measured with expected rewards and, in the Bayesian experiment, against the "
        "policy that knows the truth in the same world: the same mean as the paper's regret up to "
        "the span of the bias, with far less noise.",
        "Assumption 2 asks that J not depend on the start. The myopic mapping violates it for "
        "some systems of the paper's own prior; such runs are counted as they come.",
    ]
    return [paragraph(text) for text in texts]


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


def _write_json(path: Path, data: Any) -> None:
    with replacing(path) as temporary:
        temporary.write_text(json.dumps(data, indent=1) + "\n", encoding="utf-8")
