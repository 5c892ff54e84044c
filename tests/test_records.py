"""Numbers with names: kernels and Python read and write the same records."""

from types import GenericAlias
from typing import NamedTuple

import numpy as np
import pytest
from numpy.typing import NDArray

from restive.kernels.jit.compiler import hot_kernel, part
from restive.kernels.jit.handles import Handle, opener
from restive.kernels.jit.records import Block, Records, element_dtype, new_record, record_dtype


class Clock(Block):
    """Numbers of each type."""

    time: int
    share: float
    key: np.uint64


class Held(NamedTuple):
    """A record between other arrays."""

    before: NDArray[np.int64]
    clock: Records[Clock]
    after: NDArray[np.float64]


_opened = opener(Held)


@part
def double(held):
    held.clock[0].share *= 2.0


@hot_kernel
def advance(where, steps):
    held = _opened(where)
    clock = held.clock[0]
    for _ in range(steps):
        clock.time += 1
        double(held)
    clock.key ^= np.uint64(1)
    held.after[0] = clock.share
    return clock.time


def test_kernels_read_and_write_the_fields():
    clock = new_record(Clock, time=5, key=2**63)
    held = Held(np.zeros(2, dtype=np.int64), clock, np.zeros(1))
    clock["share"] = 0.25
    assert advance(Handle(held).where, 3) == 8
    assert (clock[0].time, clock[0].share, int(clock[0].key)) == (8, 2.0, 2**63 + 1)
    assert clock["time"][0] == 8
    assert held.after[0] == 2.0
    clock[0].time = 1
    assert advance(Handle(held).where, 1) == 2


def test_numbers_that_are_not_given_are_zero():
    assert new_record(Clock, time=3).tolist() == [(3, 0.0, 0)]


def test_many_records():
    clocks = np.zeros(3, dtype=record_dtype(Clock))
    clocks[1].time = 4
    assert clocks["time"].tolist() == [0, 4, 0]


@pytest.mark.parametrize(
    "hint",
    [
        NDArray[np.int32],
        np.ndarray[tuple[int, ...], np.dtype[np.int32]],  # what it stands for, before numpy 2.5
        GenericAlias(list, np.int32),  # one argument, as NDArray takes since then
    ],
)
def test_the_type_of_an_array_is_what_its_annotation_says_last(hint):
    assert element_dtype(hint) == np.int32
    assert element_dtype(Records[Clock]) == record_dtype(Clock)


def test_a_handle_refuses_other_records():
    class Other(Block):
        time: int

    held = Held(np.zeros(2, dtype=np.int64), new_record(Other), np.zeros(1))
    with pytest.raises(TypeError, match=r"Held\.clock: expected a contiguous line of"):
        Handle(held)
