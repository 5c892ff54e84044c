"""Priors as plain data, and the checks on a snapshot before it is trusted."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from typing import Any

import numpy as np

from restive.errors import ProblemError, RestiveError
from restive.prior import ArmPrior, IndependentPrior, JointPrior, Prior
from restive.problem import Arm, RestlessBandit

__all__ = ["SNAPSHOT_FORMAT", "checksum", "prior_from_data", "prior_to_data", "require_snapshot"]

SNAPSHOT_FORMAT = "restive-tsde-1"
FIELDS = (
    "prior",
    "num_pulls",
    "learner",
    "policy_mapping",
    "policy_mapping_is_named",
    "horizon",
    "mixing_time",
    "max_elapsed",
    "start",
    "seed",
    "replication",
    "state",
    "weights",
    "pending",
    "visits",
    "selected",
    "checksum",
)


def require_snapshot(snapshot: Any) -> None:
    """Raise unless this looks like a snapshot of this version."""
    if not isinstance(snapshot, dict) or "format" not in snapshot:
        raise ProblemError("not a snapshot: expected the data that TSDE.snapshot() returned")
    if snapshot["format"] != SNAPSHOT_FORMAT:
        raise ProblemError(
            f"the snapshot has format {snapshot['format']!r}, this version reads "
            f"{SNAPSHOT_FORMAT!r}"
        )
    missing = [field for field in FIELDS if field not in snapshot]
    if missing:
        raise ProblemError(f"the snapshot lacks {', '.join(missing)}: it was cut short or edited")
    data = {key: value for key, value in snapshot.items() if key != "checksum"}
    if snapshot["checksum"] != checksum(data):
        raise ProblemError(
            "the snapshot's checksum does not fit what it holds: it was damaged or edited"
        )


def checksum(data: Any) -> str:
    """Fingerprint of plain data, the same before and after a way through JSON."""
    digest = hashlib.sha256()
    _feed(data, digest.update)
    return digest.hexdigest()


def _feed(data: Any, update: Callable[[bytes], None]) -> None:
    if isinstance(data, dict):
        for key in sorted(data):
            update(f"{key}:".encode())
            _feed(data[key], update)
    elif isinstance(data, list) and data and all(type(item) is float for item in data):
        update(np.array(data).tobytes())  # the long lists, quickly
    elif isinstance(data, list):
        update(f"[{len(data)}".encode())
        for item in data:
            _feed(item, update)
    else:
        update(f"{data!r};".encode())


def prior_to_data(prior: Prior) -> dict[str, Any]:
    """Return a prior as plain data; shared arm priors are written once."""
    if isinstance(prior, JointPrior):
        bandits = [[_arm_to_data(arm) for arm in bandit.arms] for bandit in prior.bandits]
        num_pulls = prior.bandits[0].num_pulls
        return {"joint": bandits, "num_pulls": num_pulls, "weights": prior.weights.tolist()}
    places: dict[int, int] = {}
    written: list[dict[str, Any]] = []
    for arm in prior.arms:
        if id(arm) not in places:
            places[id(arm)] = len(written)
            candidates = [_arm_to_data(candidate) for candidate in arm.candidates]
            written.append({"candidates": candidates, "weights": arm.weights.tolist()})
    return {"arm_priors": written, "arms": [places[id(arm)] for arm in prior.arms]}


def prior_from_data(data: dict[str, Any]) -> Prior:
    """Return the prior that `prior_to_data` wrote, with weights to the bit."""
    try:
        if "joint" in data:
            bandits = [
                RestlessBandit([Arm(**arm) for arm in arms], data["num_pulls"])
                for arms in data["joint"]
            ]
            return JointPrior(bandits, data["weights"])
        arm_priors = [
            ArmPrior([Arm(**arm) for arm in written["candidates"]], written["weights"])
            for written in data["arm_priors"]
        ]
        return IndependentPrior([arm_priors[place] for place in data["arms"]])
    except (KeyError, IndexError, TypeError, ValueError) as error:
        if isinstance(error, RestiveError):
            raise
        raise ProblemError(f"the snapshot's prior cannot be read: {error!r:.100}") from None


def _arm_to_data(arm: Arm) -> dict[str, Any]:
    return {
        "active": arm.active.tolist(),
        "passive": arm.passive.tolist(),
        "rewards": arm.rewards.tolist(),
        "name": arm.name,
    }
