"""Random numbers: xoshiro256++ streams named by (seed, replication, stream).

A stream is four 64-bit words. It is filled by SplitMix64 from the three numbers that name it, so
that every replication has its own, whatever the order, thread or machine in which it runs.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from restive.kernels.compiler import kernel

UIntArray = NDArray[np.uint64]

__all__ = ["fill_stream", "uniform"]


@kernel
def _scrambled(x: np.uint64) -> np.uint64:
    """Output function of SplitMix64."""
    x = (x ^ (x >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    x = (x ^ (x >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return x ^ (x >> np.uint64(31))


@kernel
def fill_stream(
    words: UIntArray, seed: np.uint64, replication: np.uint64, stream: np.uint64
) -> None:
    """Set the four words of the stream with this name."""
    golden = np.uint64(0x9E3779B97F4A7C15)
    x = _scrambled(seed + golden) ^ replication
    x = _scrambled(x + golden) ^ stream
    for i in range(4):
        x += golden
        words[i] = _scrambled(x)


@kernel
def uniform(words: UIntArray) -> float:
    """Next number of the stream, uniform on [0, 1) with 53 bits."""
    s0, s1, s2, s3 = words[0], words[1], words[2], words[3]
    total = s0 + s3
    result = ((total << np.uint64(23)) | (total >> np.uint64(41))) + s0
    shifted = s1 << np.uint64(17)
    s2 ^= s0
    s3 ^= s1
    s1 ^= s2
    s0 ^= s3
    s2 ^= shifted
    words[0] = s0
    words[1] = s1
    words[2] = s2
    words[3] = (s3 << np.uint64(45)) | (s3 >> np.uint64(19))
    return float(result >> np.uint64(11)) * 1.1102230246251565e-16
