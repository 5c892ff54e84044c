"""Ages at which sightings are counted.

A chain of two states returns to its limit like rho^n, and the log of a belief hardly bends between
neighbouring ages once n is large. So all ages up to 64 are nodes and beyond, one odd and one even
age for each step of a sixteenth: a few hundred nodes reach any age. A sighting between two nodes
counts for both, in proportion to how near it is: the log-likelihood is interpolated linearly in n,
wrong by at most about 3e-4 / b a sighting. The two neighbours have its parity, since rho^n has
either sign in turn where rho < 0.

With three states and more a chain may turn in circles of any length, and between nodes anything may
happen. There every age is a node.
"""

from __future__ import annotations

from restive.kernels.compiler import part

__all__ = ["DENSE", "neighbours"]

DENSE = 64  # ages up to which every age is a node


@part
def neighbours(age: int, num_states: int) -> tuple[int, int, float]:
    """Nodes at or below and above an age, and the share of a sighting that goes to the latter.

    Even nodes beyond DENSE: within each octave from 64 * 2^k on, 64 * 2^k + i * 4 * 2^k; before
    each an odd one.
    """
    if num_states != 2 or age <= DENSE:
        return age, age, 0.0
    odd = age & 1
    even = age + odd  # the even node that goes with an odd one is one above it
    step = 4
    while even >= DENSE // 4 * step * 2:  # a sixteenth of the octave's beginning
        step *= 2
    low = even - even % step
    if low == even:
        return age, age, 0.0
    high = low + step
    return low - odd, high - odd, (even - low) / step
