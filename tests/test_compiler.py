"""How kernels are compiled: parts, what Numba remembers, and garbage meanwhile."""

from __future__ import annotations

import gc
import operator
from typing import Any

import numba
import numpy as np
import pytest
from numba.core import event, types
from numba.core.registry import cpu_target
from numba.extending import overload

from restive.kernels.jit.compiler import hot_kernel, kernel
from restive.kernels.jit.parts import PART, only_for_kernels
from restive.kernels.loop.world import top_arms


def test_a_part_of_kernels_cannot_be_called_from_python() -> None:
    with pytest.raises(TypeError, match="top_arms is a part of kernels"):
        top_arms(None, None)


def test_no_machine_code_is_made_of_a_part() -> None:
    @numba.njit(**PART)
    def twice(number: int) -> int:
        return 2 * number

    only_for_kernels(twice)

    @numba.njit
    def twice_and_one(number: int) -> int:
        return int(twice(number)) + 1

    assert twice_and_one(3) == 7
    (of_integers,) = twice.overloads.values()
    assert list(of_integers.library.get_defined_functions()) == []


def test_what_numba_remembers_of_one_kernel_holds_for_another() -> None:
    """The same operators, on arrays and numbers of other types, with and without references."""

    def tangled(numbers: Any, at: int) -> Any:
        first = numbers[0]
        numbers[at] = max(numbers[at] + 1, 3)
        return first + numbers[at] ** 2 + len(numbers[:at]) + min(first, numbers[-1]) // 2

    def fresh(count: int) -> Any:
        return np.zeros(count)[count - 1] + np.full(2, count).sum()  # made inside

    for make in (kernel, hot_kernel, kernel):
        compiled = make(tangled)
        for dtype in (np.int64, np.float64, np.int32):
            for at in (1, 2):
                expected, found = np.arange(4, dtype=dtype), np.arange(4, dtype=dtype)
                assert compiled(found, at) == tangled(expected, at)
                assert found.tolist() == expected.tolist()
        assert kernel(fresh)(3) == 6


def test_a_constant_is_forgotten_only_as_an_index() -> None:
    """Beside an array, too, functions may do different things with different constants."""

    def hundreds(array: Any, number: int) -> int:
        return -number  # which nothing but Python would call

    @overload(hundreds, prefer_literal=True)
    def _hundreds(array, number):
        if isinstance(number, types.Literal):
            times = 100 * number.literal_value
            return lambda array, number: times
        return lambda array, number: -number

    numbers = np.zeros(3)
    assert kernel(lambda array: hundreds(array, 1))(numbers) == 100
    assert kernel(lambda array: hundreds(array, 2))(numbers) == 200
    assert kernel(lambda array: hundreds(array, len(array)))(numbers) == -3
    sides = [
        kernel(lambda array: np.searchsorted(array, 0.0, "left"))(numbers),
        kernel(lambda array: np.searchsorted(array, 0.0, "right"))(numbers),
    ]
    assert sides == [0, 3]


def test_numba_itself_remembers_as_before() -> None:
    """Kernels of others share nothing with ours but what Numba knows about types."""
    assert type(cpu_target.typing_context.resolve_value_type(operator.getitem)) is types.Function
    assert numba.njit(lambda pair: sum([one * 2 for one in pair]))((1, 2)) == 6


def test_python_looks_for_garbage_again_after_compiling() -> None:
    looked = []

    class Noting(event.Listener):
        def on_start(self, happened: Any) -> None:
            looked.append(gc.isenabled())

        def on_end(self, happened: Any) -> None:
            looked.append(gc.isenabled())

    with event.install_listener("numba:compile", Noting()):
        numba.njit(lambda number: number + 1)(1)
    assert looked[0] is False
    assert gc.isenabled()


def test_compiling_leaves_the_search_for_garbage_off_where_it_was() -> None:
    gc.disable()
    try:
        numba.njit(lambda number: number + 2)(1)
        assert not gc.isenabled()
    finally:
        gc.enable()
