"""Logs of arms that are always seen: chains drawn anew, and what they lead one to expect.

Pulls are chosen by what is seen, so the log's pulls do not go with other states than its own. What
chains say of a log is therefore told a step at a time: the mean of each state, given the log's own
one before. How far a log may be from that by chance is told by whole chains, each compared with the
means of its own next states. They have what single steps have not: measured within an arm, whose
mean is made of earlier and later states, a right chain in a log of few steps seems to turn back
(Hurwicz 1950; for many arms, Nickell 1981).
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from restive.logs.sample import LEVELS, Sample

__all__ = ["next_means", "whole_chains"]

FloatArray = NDArray[np.float64]
States = NDArray[np.int16]


def next_means(sample: Sample, active: FloatArray, passive: FloatArray, states: States) -> States:
    """Return the mean score of each sighting, given the state before it, as a place in `scores`.

    Those after a gap stay as they are.
    """
    size = sample.log.num_states
    paid = np.concatenate([active, passive], axis=1) * sample.scores[:size]
    means = paid.sum(axis=2)  # [K', 2 S]
    before = np.roll(states + size * (sample.by_mode & ~sample.pulled), 1)
    expected = size + np.rint(means[sample.owner, before] * (LEVELS - 1))
    return np.where(sample.foretold, expected, states).astype(np.int16)


def whole_chains(
    sample: Sample, active: FloatArray, passive: FloatArray, rng: np.random.Generator
) -> States:
    """Draw all sightings anew, each from the one that was drawn before it, with the log's pulls."""
    states, size = sample.states.astype(np.int16), sample.log.num_states
    below = np.cumsum(np.concatenate([active, passive], axis=1), axis=2)[:, :, :-1]  # [K', 2 S, .]
    order = np.argsort(sample.place, kind="stable")  # by place, then arm
    edges = np.searchsorted(sample.place[order], np.arange(int(sample.place.max(initial=0)) + 2))
    for place in range(1, len(edges) - 1):
        rows = order[edges[place] : edges[place + 1]]
        rows = rows[sample.foretold[rows]]
        before = states[rows - 1] + size * (sample.by_mode & ~sample.pulled[rows - 1])
        lots = rng.random((len(rows), 1))
        states[rows] = (lots >= below[sample.owner[rows], before]).sum(axis=1)
    return states
