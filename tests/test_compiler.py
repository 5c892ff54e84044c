"""How kernels are compiled: parts, and garbage meanwhile."""

from __future__ import annotations

import gc
from typing import Any

import numba
import pytest
from numba.core import event

from restive.kernels.jit.parts import PART, only_for_kernels
from restive.kernels.loop.choosing import top_arms


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
