"""The report's theory section: the paper's bounds beside what was measured (Sections 4 and 5)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from restive.learn.priors.independent import grid_prior
from restive.measure.theory import bounds_for, decompose_regret, discounted_spans
from restive.pages.page import render
from restive.plan.evaluate import evaluate
from restive.plan.policies.whittle import whittle
from restive.problem.bandit import RestlessBandit
from restive.studies.report.numbers import with_error
from restive.studies.summary import CaseSummary

if TYPE_CHECKING:
    from markupsafe import Markup

__all__ = ["theory_numbers", "theory_section"]

# Small enough that the bias of every system in the prior's support can be solved.
LEVELS = (0.2, 0.8)
NUM_ARMS, NUM_PULLS, HORIZON = 3, 1, 200
DISCOUNTS = (0.9, 0.99, 0.999, 0.9999, 0.99999)


def theory_numbers(
    bayesian: Sequence[CaseSummary],
    frequentist: Sequence[CaseSummary],
    replications: int,
    seed: int,
) -> dict[str, Any]:
    """Compute what the section shows, as plain data."""
    bandit = frequentist[0].case.settings.systems()[0]
    assert isinstance(bandit, RestlessBandit)
    policy = whittle(bandit)
    span = float(evaluate(bandit, policy).bias_span)
    parts = decompose_regret(
        grid_prior(LEVELS, NUM_ARMS),
        NUM_PULLS,
        "whittle",
        HORIZON,
        replications=replications,
        seed=seed,
    )
    terms = {
        "R_0 (sampled J against true J)": parts.sampling_regret,
        "R_1 (changes of the bias at switches)": parts.switching_regret,
        "R_2 (transitions that were not as sampled)": parts.transition_regret,
        "R_3 (rewards that were not as sampled)": parts.reward_regret,
        "R (regret)": parts.regret,
    }
    identity = np.abs(parts.regret - sum(list(terms.values())[:4])).max()
    return {
        "bias_span": span,
        "spans": [[beta, float(found)] for beta, found in zip(
            DISCOUNTS, discounted_spans(bandit, policy, DISCOUNTS), strict=True)],
        "settings": [
            *(_bounds(found, 0.0) for found in bayesian),
            *(_bounds(found, span) for found in frequentist),
        ],
        "terms": [[name, float(v.mean()), _stderr(v)] for name, v in terms.items()],
        "identity_error": float(identity),
        "bellman_residual": parts.bellman_residual,
        "comparisons": [list(row) for row in parts.comparisons],
        "replications": replications,
        "num_systems": len(parts.systems),
        "small_span": parts.bias_span,
    }  # fmt: skip


def _stderr(values: Any) -> float:
    return float(values.std(ddof=1) / np.sqrt(len(values)))


def _bounds(found: CaseSummary, span: float) -> dict[str, Any]:
    _, prior, num_pulls = found.case.settings.systems()
    horizon = found.case.settings.horizon
    bounds = bounds_for(prior, num_pulls, horizon, span)
    return {
        "kind": found.case.settings.kind,
        "mapping": found.case.mapping,
        "truncation": bounds.truncation,
        "bound": bounds.regret,
        "most": num_pulls * horizon,
        "regret": [float(found.regret.mean[-1]), float(found.regret.stderr[-1])],
        "replications": found.replications,
        "episodes": float(found.num_episodes.mean[-1]),
        "episode_bound": bounds.episodes,
        "episode_bound_as_printed": bounds.episodes_as_printed,
    }


def theory_section(found: dict[str, Any]) -> Markup:
    """Return the section that shows these numbers."""
    count = found["replications"]
    bounds = [
        [
            f"{row['kind']}, {row['mapping'].replace('_', ' ')}",
            f"{row['bound']:,.0f}",
            f"{row['most']:,}",
            with_error(row["regret"][0], row["regret"][1], row["replications"]),
            f"{row['regret'][0] / row['bound']:.1e}",
            f"{row['episode_bound']:,.0f} ({row['episode_bound_as_printed']:,.0f})",
            f"{row['episodes']:.0f}",
            f"{row['episodes'] / row['episode_bound']:.2f}",
        ]
        for row in found["settings"]
    ]
    spans = [[f"{beta:g}", f"{span:.6f}"] for beta, span in found["spans"]]
    return render(
        "paper/theory_section.html",
        found=found,
        bounds=bounds,
        spans=[*spans, ["1 (bias)", f"{found['bias_span']:.6f}"]],
        terms=[[name, with_error(mean, error, count)] for name, mean, error in found["terms"]],
        comparisons=[
            [name, with_error(measured, error, count), f"{bound:,.4g}", f"{ratio:.3g}"]
            for name, measured, error, bound, ratio in found["comparisons"]
        ],
        setting=f"{NUM_ARMS} arms, {NUM_PULLS} pull, T = {HORIZON}, prior uniform on "
        f"{{{', '.join(map(str, LEVELS))}}}² per arm",
    )
