"""Priors as plain data, and back with the same bits."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from restive.arguments import MOST_ARMS
from restive.errors import ProblemError, RestiveError
from restive.learn.priors.continuous import DirichletArmPrior
from restive.learn.priors.finite import ArmPrior, JointPrior
from restive.learn.priors.independent import IndependentPrior, Prior
from restive.problem.arm import Arm
from restive.problem.bandit import RestlessBandit

__all__ = ["prior_from_data", "prior_to_data", "run_columns", "runs"]

IntArray = NDArray[np.int64]


def prior_to_data(prior: Prior) -> dict[str, Any]:
    """Return a prior as plain data; shared arm priors are written once."""
    if isinstance(prior, JointPrior):
        bandits = [[_arm_to_data(arm) for arm in bandit.arms] for bandit in prior.bandits]
        num_pulls = prior.bandits[0].num_pulls
        return {"joint": bandits, "num_pulls": num_pulls, "weights": prior.weights.tolist()}
    places: dict[int, int] = {}
    written: list[dict[str, Any]] = []
    for arm in prior.arms:
        if id(arm) in places:
            continue
        if isinstance(arm, ArmPrior) and arm.kind is not arm:
            if id(arm.kind) not in places:
                places[id(arm.kind)] = len(written)
                written.append(_arm_prior_to_data(arm.kind))
            places[id(arm)] = len(written)
            written.append({"kind": places[id(arm.kind)], "weights": arm.weights.tolist()})
        else:
            places[id(arm)] = len(written)
            written.append(_arm_prior_to_data(arm))
    arms = np.array([places[id(arm)] for arm in prior.arms], dtype=np.int64)
    return {"arm_priors": written, "arms": runs([arms]), "pooled": prior.pooled}


def prior_from_data(data: dict[str, Any]) -> Prior:
    """Return the prior that `prior_to_data` wrote, with weights to the bit."""
    try:
        if "joint" in data:
            bandits = [
                RestlessBandit([Arm(**arm) for arm in arms], data["num_pulls"])
                for arms in data["joint"]
            ]
            return JointPrior(bandits, data["weights"])
        arm_priors: list[ArmPrior | DirichletArmPrior] = []
        for written in data["arm_priors"]:
            if "kind" in written:
                kind = arm_priors[written["kind"]]
                if not isinstance(kind, ArmPrior):
                    raise ValueError("a kind of candidates is continuous")
                arm_priors.append(kind.informed(written["weights"]))
            else:
                arm_priors.append(_arm_prior_from_data(written))
        (places,) = run_columns(data["arms"], MOST_ARMS)
        arms = [arm_priors[place] for place in places.tolist()]
        return IndependentPrior(arms, data["pooled"])
    except (KeyError, IndexError, TypeError, ValueError) as error:
        if isinstance(error, RestiveError):
            raise
        raise ProblemError(f"the snapshot's prior cannot be read: {error!r:.100}") from None


def _arm_prior_to_data(arm: ArmPrior | DirichletArmPrior) -> dict[str, Any]:
    if isinstance(arm, DirichletArmPrior):
        return arm.to_data()
    candidates = [_arm_to_data(candidate) for candidate in arm.candidates]
    return {"candidates": candidates, "weights": arm.weights.tolist()}


def _arm_prior_from_data(data: dict[str, Any]) -> ArmPrior | DirichletArmPrior:
    if "dirichlet" in data:
        return DirichletArmPrior.from_data(data)
    return ArmPrior([Arm(**arm) for arm in data["candidates"]], data["weights"])


def _arm_to_data(arm: Arm) -> dict[str, Any]:
    data = {
        "active": arm.active.tolist(),
        "passive": arm.passive.tolist(),
        "rewards": arm.rewards.tolist(),
        "name": arm.name,
        "states": None if arm.states is None else list(arm.states),
    }
    if arm.pays_unpulled:
        data["passive_rewards"] = arm.passive_rewards.tolist()
    if arm.always_seen:
        data["seen"] = arm.seen
    return data


def runs(columns: list[IntArray]) -> list[list[int]]:
    """Rows of equal columns, each with its length: a million equal arms are one row."""
    table = np.array(columns)
    changes = np.flatnonzero((np.diff(table, axis=1) != 0).any(axis=0)) + 1
    starts = np.concatenate([[0], changes]).astype(np.int64)
    lengths = np.diff(np.append(starts, table.shape[1]))
    rows = table[:, starts].T.tolist()
    return [[int(length), *row] for length, row in zip(lengths, rows, strict=True)]


def run_columns(rows: list[list[int]], most: int) -> list[IntArray]:
    """Return the columns that `runs` wrote; raise ValueError where that cannot be."""
    table = np.array(rows)
    if (
        table.ndim != 2
        or not 1 <= table[:, 0].min() <= table[:, 0].max() <= most
        or table[:, 0].sum() > most
    ):
        raise ValueError("the arms cannot be counted")
    return [np.repeat(column, table[:, 0]) for column in table[:, 1:].T]
