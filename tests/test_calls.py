"""Kernels that are called by their address."""

import numpy as np

from restive.kernels.jit.calls import address_of, call_at
from restive.kernels.jit.compiler import hot_kernel, kernel


@kernel
def any_above(numbers):
    """Make an array, which hot kernels and what they call cannot."""
    copied = np.empty(len(numbers), dtype=np.int64)
    for i in range(len(numbers)):
        copied[i] = 2 * numbers[i]
    return copied.max() > 10


@hot_kernel
def asked(address, numbers):
    return call_at(address, numbers)


def test_a_hot_kernel_calls_one_that_makes_arrays():
    address = address_of(any_above)
    assert address == address_of(any_above) != 0
    for largest in (3, 5, 6, 100):
        numbers = np.array([1, largest, -7])
        assert asked(address, numbers) is any_above(numbers) is (largest > 5)


def test_memory_is_given_back():
    address, numbers = address_of(any_above), np.zeros(100_000, dtype=np.int64)
    assert not any(asked(address, numbers) for _ in range(2_000))  # 1.6 GB in all
