"""Results as columns: for files and for data frames alike."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from restive.experiment.spec import OWN_LABELS, Case

if TYPE_CHECKING:
    from restive.experiment.summary import CaseSummary

__all__ = ["Columns", "curve_columns", "curve_table", "headed", "label_columns"]

Columns = dict[str, NDArray[Any]]  # equally long


def curve_table(found: Sequence[CaseSummary]) -> Columns:
    """Return the curves of some cases, one below the other."""
    labels = label_columns([summary.case for summary in found])
    parts = [headed(summary.case, labels, curve_columns(summary)) for summary in found]
    return {key: np.concatenate([part[key] for part in parts]) for key in parts[0]}


def headed(case: Case, labels: dict[str, dict[int, Any]], block: Columns) -> Columns:
    """Return columns of a case with those before them that say which case it is."""
    count = len(next(iter(block.values())))
    head = {"case": case.number, "learner": case.learner, "mapping": case.mapping}
    head |= {key: values[case.number] for key, values in labels.items()}
    return {key: np.full(count, value) for key, value in head.items()} | block


def label_columns(cases: Sequence[Case]) -> dict[str, dict[int, Any]]:
    """Swept values by case: numbers where all of a key's are, so that they are no text."""
    columns: dict[str, dict[int, Any]] = {}
    for key in cases[0].labels:
        if key not in OWN_LABELS:
            numbers = all(not isinstance(case.labels[key], str) for case in cases)
            columns[key] = {
                case.number: case.labels[key] if numbers else case.shown[key] for case in cases
            }
    return columns


def curve_columns(found: CaseSummary) -> Columns:
    """Return what a case has shown, a row per recorded time."""
    count = len(found.times)
    columns: Columns = {"time": found.times, "replications": np.full(count, found.replications)}
    for name, curve in (
        ("regret", found.regret),
        ("realised_regret", found.realised_regret),
        ("average_reward", found.average_reward),
        ("oracle_reward", found.oracle_reward),
        ("num_episodes", found.num_episodes),
    ):
        columns |= {name: curve.mean, f"{name}_stderr": curve.stderr}
    mean, stderr = found.truth_reward
    columns["truth_reward"] = np.full(count, mean)
    columns["truth_reward_stderr"] = np.full(count, stderr)
    bound, against_bound = found.relaxation_bound, found.bound_regret
    missing = np.full(count, np.nan)  # the columns are the same everywhere
    columns["relaxation_bound"] = missing if bound is None else np.full(count, bound)
    columns["bound_regret"] = missing if against_bound is None else against_bound.mean
    columns["bound_regret_stderr"] = missing if against_bound is None else against_bound.stderr
    return columns
