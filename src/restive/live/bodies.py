"""Bodies of the events that say who the arms are, as plain data and back."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from restive.live.roster import NewArm

__all__ = ["joining", "new_arms"]


def joining(arms: Sequence[NewArm], kinds: Sequence[str]) -> dict[str, Any]:
    """Write arms that join; kinds by their number, what is not known left out."""
    places = {kind: number for number, kind in enumerate(kinds)}
    return {
        "names": [arm.name for arm in arms],
        "kinds": [places[arm.kind] for arm in arms],
        "seen": {
            str(i): [arm.last_state, arm.elapsed]
            for i, arm in enumerate(arms)
            if arm.last_state is not None
        },
        "evidence": {str(i): arm.evidence for i, arm in enumerate(arms) if arm.evidence},
    }


def new_arms(body: dict[str, Any], kinds: Sequence[str]) -> list[NewArm]:
    """Return the arms that `joining` wrote."""
    found = [
        NewArm(name, kinds[kind]) for name, kind in zip(body["names"], body["kinds"], strict=True)
    ]
    for at, (state, age) in body["seen"].items():
        found[int(at)] = found[int(at)]._replace(last_state=state, elapsed=age)
    for at, cells in body["evidence"].items():
        found[int(at)] = found[int(at)]._replace(evidence=tuple(tuple(cell) for cell in cells))
    return found
