"""The page of a finished reproduction: figures, claims, what differs from the paper, and why."""

from __future__ import annotations

import json
import shlex
from dataclasses import asdict
from pathlib import Path
from typing import Any

from restive.errors import RestiveError
from restive.experiment import CaseSummary, Ledger, load_results
from restive.files import replacing, require_target
from restive.report import charts
from restive.report.page import figures, page, paragraph, section, table
from restive.report.study_page import READING, how_it_was_run, results_table
from restive.reproduction.claims import Claim, check_claims
from restive.reproduction.theory_section import theory_section

__all__ = ["MARKER", "STUDIES", "is_reproduction", "paper_results", "render", "write_json"]

STUDIES = ("bayesian", "frequentist")
MARKER = "reproduction.json"
PAGE = "report.html"


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
    bayesian, frequentist = paper_results(folder)
    ledgers = [Ledger.open(folder / name) for name in STUDIES]
    wanted = max(ledger.study.replications for ledger in ledgers)
    if any(found.replications < wanted for found in (*bayesian, *frequentist)):
        raise RestiveError(
            f"{folder}: not complete; run `restive reproduce --replications {wanted}` again"
        )
    claims = check_claims(bayesian, frequentist)
    write_json(folder / "claims.json", [asdict(claim) for claim in claims])
    whittle = next(found for found in frequentist if found.case.mapping == "whittle")
    panels = {
        "figure-2": [charts.draw_regret(bayesian), charts.draw_log_regret(bayesian)],
        "figure-3": [charts.draw_average_reward(frequentist), charts.draw_posterior(whittle)],
    }
    for name, draws in panels.items():
        charts.write_figure(charts.side_by_side(draws), folder / name)
    pictures = {
        name: [charts.svg(charts.side_by_side([draw]), f"{name}-{side}")
               for side, draw in zip("ab", draws, strict=True)]
        for name, draws in panels.items()
    }  # fmt: skip
    seed = ledgers[0].manifest["study"]["seed"]
    command = (
        f"restive reproduce --replications {wanted} --seed {seed} --out {shlex.quote(str(folder))}"
    )
    parts = [
        paragraph(
            "Jung, Abeille and Tewari, “Thompson Sampling in Non-Episodic Restless Bandits”, "
            f"Section 6, with {wanted:,} replications of each experiment (the paper: 100 or more)."
        ),
        section("Claims", _claims_table(claims)),
        section(
            "Figure 2: Bayesian regret",
            figures(
                [
                    (pictures["figure-2"][0], "Bayesian regret of TSDE (K = 8, N = 3, T = 2,000)."),
                    (pictures["figure-2"][1], "The same on logarithmic axes, with slope 1/2."),
                ]
            ),
            results_table(bayesian),
            paragraph(READING, "note"),
        ),
        section(
            "Figure 3: one system, T = 10,000",
            figures(
                [
                    (
                        pictures["figure-3"][0],
                        "Average reward of TSDE so far; dotted: J of each mapping.",
                    ),
                    (
                        pictures["figure-3"][1],
                        "Posterior weight of the true (p01, p11) of each arm, Whittle's mapping.",
                    ),
                ]
            ),
            results_table(frequentist),
        ),
        section(
            "What differs from the paper, and why", *_differences(bayesian, frequentist, claims)
        ),
        theory_section(theory),
        how_it_was_run(ledgers, command),
    ]
    title = "Thompson sampling in non-episodic restless bandits: a reproduction"
    with replacing(target) as temporary:
        temporary.write_text(page(title, parts), encoding="utf-8")
    return target


def paper_results(folder: Path) -> tuple[list[CaseSummary], list[CaseSummary]]:
    """Summarise the two studies of a reproduction."""
    bayesian, frequentist = (load_results(folder / name) for name in STUDIES)
    return bayesian, frequentist


def _claims_table(claims: list[Claim]) -> str:
    counts = {word: sum(claim.verdict == word for claim in claims)
              for word in ("holds", "fails", "undecided")}  # fmt: skip
    rows = [(c.place, c.claim, c.paper, c.ours, c.verdict) for c in claims]
    header = ("where", "claim", "paper", "here", "verdict")
    return table(header, rows, stacked=True) + paragraph(
        f"{counts['holds']} hold, {counts['fails']} fail, {counts['undecided']} undecided. A claim "
        "holds or fails when its 95% interval says so; undecided means too few replications.",
        "note",
    )


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


def write_json(path: Path, data: Any) -> None:
    """Write plain data, whole or not at all."""
    with replacing(path) as temporary:
        temporary.write_text(json.dumps(data, indent=1) + "\n", encoding="utf-8")
