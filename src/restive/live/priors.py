"""The priors of kinds, in the file of a live agent: to the bit, each with its digest."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from hashlib import sha256
from typing import Any

from restive.errors import StoreError
from restive.learn.priors.data import prior_from_data, prior_to_data
from restive.learn.priors.finite import JointPrior
from restive.learn.priors.independent import IndependentPrior
from restive.live.journal import Journal, as_text

__all__ = ["store_priors", "stored_priors"]


def store_priors(journal: Journal, kinds: Mapping[str, Any]) -> list[list[str]]:
    """Write the prior of each kind; return kinds and digests, for the first event."""
    listed = []
    for number, (kind, law) in enumerate(kinds.items(), 1):
        prior = law if isinstance(law, JointPrior) else IndependentPrior([law])
        text = as_text(prior_to_data(prior))
        digest = sha256(text.encode()).digest()
        row = (number, kind, text, digest)
        journal.connection.execute("INSERT INTO prior VALUES (?, ?, ?, ?)", row)
        listed.append([kind, digest.hex()])
    return listed


def stored_priors(journal: Journal, listed: Sequence[Sequence[str]]) -> dict[str, Any]:
    """Return the prior of each kind that the first event lists."""
    kinds: dict[str, Any] = {}
    rows = journal.connection.execute("SELECT kind, body FROM prior ORDER BY id").fetchall()
    for (kind, text), (named, digest) in zip(rows, listed, strict=True):
        if named != kind or sha256(text.encode()).hexdigest() != digest:
            raise StoreError(
                f"{journal.path}: the prior of kind {kind!r} was damaged or edited; take your last "
                "backup"
            )
        prior = prior_from_data(json.loads(text))
        kinds[kind] = prior if isinstance(prior, JointPrior) else prior.arms[0]
    return kinds
