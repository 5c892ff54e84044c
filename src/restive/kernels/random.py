"""Random numbers without state: SplitMix64 as a function of (key, place).

A stream is named by (seed, replication, stream) and is one 64-bit key; its numbers are those at the
places 0, 1, 2, ... So a replication has its own numbers whatever the order, thread or machine in
which it runs, and two learners in one world see the same luck: the world's number for arm k at time
t is at the place t K + k, whoever asks.
"""

from __future__ import annotations

import numpy as np

from restive.arguments import checked_seed
from restive.kernels.jit.compiler import inlined, kernel

__all__ = [
    "HIDDEN",
    "LEARNER",
    "RENEWAL",
    "TRUTH",
    "WORLD",
    "bits_at",
    "key_at",
    "stream",
    "stream_key",
    "uniform_at",
]

WORLD, LEARNER, TRUTH, RENEWAL, HIDDEN = 0, 1, 2, 3, 4  # streams of a replication

GOLDEN = np.uint64(0x9E3779B97F4A7C15)


@inlined
def _scrambled(x: np.uint64) -> np.uint64:
    """Output function of SplitMix64."""
    x = (x ^ (x >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    x = (x ^ (x >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return x ^ (x >> np.uint64(31))


@kernel
def stream_key(seed: np.uint64, replication: int, stream: int) -> np.uint64:
    """Key of the stream with this name."""
    x = _scrambled(seed + GOLDEN) ^ np.uint64(replication)
    x = _scrambled(x + GOLDEN) ^ np.uint64(stream)
    return _scrambled(x + GOLDEN)


@inlined
def bits_at(key: np.uint64, place: int) -> np.uint64:
    """Return the 64 bits of the stream at `place`."""
    return _scrambled(key + (np.uint64(place) + np.uint64(1)) * GOLDEN)


@kernel
def key_at(key: np.uint64, place: int) -> np.uint64:
    """Key of the stream that is within another at `place`; call it as `np.uint64(key_at(...))`."""
    return bits_at(key, place)


@inlined
def uniform_at(key: np.uint64, place: int) -> float:
    """Return the number of the stream at `place`, uniform on [0, 1) with 53 bits."""
    return float(bits_at(key, place) >> np.uint64(11)) * 1.1102230246251565e-16


def stream(seed: int, replication: int, name: int) -> np.uint64:
    """Key of a stream of random numbers."""
    # compiled code hands numbers back as Python's, which have no fixed type
    return np.uint64(stream_key(np.uint64(checked_seed(seed)), replication, name))
