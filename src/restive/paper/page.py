"""A finished reproduction as a page: the verdict, figures, claims, and what differs and why.

The paper's Figures 2 and 3 are written as files, too.
"""

from __future__ import annotations

import json
import shlex
from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from restive.errors import RestiveError
from restive.files import replacing, require_target
from restive.pages.chart import Chart, render_chart
from restive.pages.drawing import write_figure
from restive.pages.forest import Row
from restive.pages.page import render
from restive.paper.claims import Claim, check_claims
from restive.paper.theory_section import theory_section
from restive.studies.ledger import Ledger
from restive.studies.report import charts
from restive.studies.report.charts import Naming
from restive.studies.report.forests import forest
from restive.studies.report.study_page import how_it_was_run, results_table
from restive.studies.report.verdicts import study_verdict
from restive.studies.summary import CaseSummary, load_results

if TYPE_CHECKING:
    from markupsafe import Markup

__all__ = [
    "MARKER",
    "STUDIES",
    "is_reproduction",
    "page_figures",
    "paper_results",
    "write_figures",
    "write_json",
    "write_page",
]

STUDIES = ("bayesian", "frequentist")
MARKER = "reproduction.json"
PAGE = "report.html"


def is_reproduction(folder: Path) -> bool:
    """Whether a folder is that of a reproduction that has come to its end."""
    return (folder / MARKER).is_file()


def write_page(folder: Path, path: Path | None = None) -> Path:
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
    write_figures(bayesian, frequentist, folder)
    seed = ledgers[0].manifest["study"]["seed"]
    command = (
        f"restive reproduce --replications {wanted} --seed {seed} --out {shlex.quote(str(folder))}"
    )
    growth, lead = study_verdict(bayesian, Naming(bayesian))
    text = render(
        "paper/page.html",
        title="Thompson sampling in non-episodic restless bandits: a reproduction",
        eyebrow="restive · reproduction of Jung, Abeille and Tewari, “Thompson Sampling in "
        "Non-Episodic Restless Bandits”, Section 6",
        heading=_verdict(claims),
        lead=[
            f"{growth} {lead[0]}",
            f"Found with {wanted:,} replications of each experiment (the paper: 100 or more). A "
            "claim holds or fails when its 95% interval says so; undecided means too few "
            "replications.",
        ],
        figures=page_figures(bayesian, frequentist),
        claims=_by_place(claims),
        differences=_differences(bayesian, frequentist, claims),
        theory=theory_section(theory),
        bayesian=results_table(bayesian),
        frequentist=results_table(frequentist),
        how_it_was_run=how_it_was_run(ledgers, command),
    )
    with replacing(target) as temporary:
        temporary.write_text(text, encoding="utf-8")
    return target


def paper_results(folder: Path) -> tuple[list[CaseSummary], list[CaseSummary]]:
    """Return the results of both studies."""
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


def _by_place(claims: list[Claim]) -> list[dict[str, Any]]:
    """Return the claims by their place in the paper, unfolded where one does not hold."""
    places: dict[str, list[Claim]] = {}
    for claim in claims:
        places.setdefault(claim.place, []).append(claim)
    return [
        {
            "name": place,
            "rows": [(claim.claim, claim.paper, claim.ours, claim.verdict) for claim in made],
            "verdict": _verdict(made).rstrip("."),
            "unfolded": any(claim.verdict != "holds" for claim in made),
        }
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
    return [
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


def write_json(path: Path, data: Any) -> None:
    """Write plain data, whole or not at all."""
    with replacing(path) as temporary:
        temporary.write_text(json.dumps(data, indent=1) + "\n", encoding="utf-8")


def page_figures(
    bayesian: Sequence[CaseSummary], frequentist: Sequence[CaseSummary]
) -> list[list[Markup]]:
    """Return both figures for the page, in pairs: beside Figure 2 the fitted growth."""
    naming = Naming([*bayesian, *frequentist])
    regret, reward, posterior = _charts(bayesian, frequentist, naming)
    growth = [_growth(bayesian, naming)] if any(found.slope for found in bayesian) else []
    return [
        [render_chart(chart) for chart in pair] for pair in ([regret, *growth], [reward, posterior])
    ]


def write_figures(
    bayesian: Sequence[CaseSummary], frequentist: Sequence[CaseSummary], folder: Path
) -> None:
    """Write figure-2 and figure-3 as .png and .svg."""
    naming = Naming([*bayesian, *frequentist])
    regret, reward, posterior = (made.panels[0] for made in _charts(bayesian, frequentist, naming))
    for name, panels in {
        "figure-2": charts.figure_of([(regret, "linear"), (regret, "log")]),
        "figure-3": charts.figure_of([(reward, "log time"), (posterior, "log time")]),
    }.items():
        write_figure(panels, folder / name)


def _charts(
    bayesian: Sequence[CaseSummary], frequentist: Sequence[CaseSummary], naming: Naming
) -> tuple[Chart, Chart, Chart]:
    whittle = [found for found in frequentist if found.case.mapping == "whittle"]
    regret = charts.regret_chart({"": bayesian}, naming)
    reward = charts.reward_chart({"": frequentist}, naming)
    (posterior,) = charts.posterior_charts({"": whittle}, naming)
    return (
        replace(regret, name="figure-2", title="Figure 2: Bayesian regret of TSDE"),
        replace(reward, name="figure-3-left", title="Figure 3, left: one system, reward per step"),
        replace(
            posterior, name="figure-3-right", title="Figure 3, right: weight of the true (p01, p11)"
        ),
    )


def _growth(bayesian: Sequence[CaseSummary], naming: Naming) -> Chart:
    """Return the exponents of regret's growth, beside that of the square root."""
    rows = [
        Row(
            naming.number(found), naming.name(found), slope.last, slope.value, slope.lower,
            slope.upper, f"{slope.value:.3f} [{slope.lower:.3f}, {slope.upper:.3f}]",
            filled=not slope.lower <= 0.5 <= slope.upper,
        )
        for found in bayesian
        if (slope := found.slope) is not None
    ]  # fmt: skip
    return forest(
        "growth", "How fast does it grow?",
        "Exponent a of regret ~ t^a over the last decade of time, with 95% intervals. The upright "
        "line is the square root, 1/2; hollow: the interval does not tell it from that.",
        {"": rows}, {"": "exponent of time"}, ("mapping", "exponent"), "linear",
        scales=("linear",), references=(0.5,),
    )  # fmt: skip
