"""Arrays handed over by their addresses: what arrives is what was handed over, compiled or not."""

import gc
import os
import pickle
import subprocess
import sys
from typing import NamedTuple

import numpy as np
import pytest
from numba.core.errors import NumbaError, TypingError
from numpy.typing import NDArray

from restive.kernels.jit.compiler import hot_kernel, kernel, part
from restive.kernels.jit.handles import Handle, by_address, opener


class Inner(NamedTuple):
    """Arrays of each type."""

    floats: NDArray[np.float64]
    truths: NDArray[np.bool_]
    keys: NDArray[np.uint64]


class Outer(NamedTuple):
    """Arrays, and a tuple of them in between."""

    ints: NDArray[np.int64]
    inner: Inner
    small: NDArray[np.int32]


_opened = opener(Outer)


@hot_kernel
def stir(where, factor):
    outer = _opened(where)
    total = 0.0
    for i in range(len(outer.ints)):
        total += outer.ints[i]
        outer.ints[i] += factor
    for i in range(len(outer.inner.floats)):
        total += outer.inner.floats[i]
        outer.inner.floats[i] *= factor
    for i in range(len(outer.inner.truths)):
        outer.inner.truths[i] = not outer.inner.truths[i]
    for i in range(len(outer.inner.keys)):
        outer.inner.keys[i] ^= np.uint64(1)
    for i in range(len(outer.small)):
        total += outer.small[i]
        outer.small[i] -= 1
    return total + 1000 * len(outer.small)


def some_arrays():
    inner = Inner(np.array([0.5, 0.25]), np.array([True, False, True]), np.array([7], np.uint64))
    return Outer(np.array([1, 2, 3]), inner, np.array([10, 20], np.int32))


def test_what_arrives_is_what_was_handed_over():
    held = some_arrays()
    handle = Handle(held)
    assert stir(handle.where, 4) == 2036.75
    assert held.ints.tolist() == [5, 6, 7]
    assert held.inner.floats.tolist() == [2, 1]
    assert held.inner.truths.tolist() == [False, True, False]
    assert held.inner.keys.tolist() == [6]
    assert held.small.tolist() == [9, 19]
    empty = held._replace(small=np.zeros(0, np.int32))
    assert stir(Handle(empty).where, 1) == 18 + 3
    assert held.ints.tolist() == [6, 7, 8]  # shared with the first


def test_a_handle_keeps_its_arrays_alive():
    handle = Handle(some_arrays())
    gc.collect()
    junk = [np.full(3, 77) for _ in range(1000)]
    assert stir(handle.where, 4) == 2036.75
    assert all((array == 77).all() for array in junk)


def test_a_copy_of_a_handle_has_arrays_of_its_own():
    handle = Handle(some_arrays())
    other = pickle.loads(pickle.dumps(handle))
    assert stir(other.where, 4) == 2036.75
    assert handle.held.ints.tolist() == [1, 2, 3]
    assert stir(handle.where, 4) == 2036.75


@pytest.mark.parametrize(
    ("changed", "name"),
    [
        ({"ints": np.array([1.0])}, "Outer.ints"),
        ({"ints": np.array([1], np.int32)}, "Outer.ints"),
        ({"ints": np.arange(6)[::2]}, "Outer.ints"),
        ({"ints": np.ones((2, 2), np.int64)}, "Outer.ints"),
        ({"small": np.array([1])}, "Outer.small"),
        (
            {"inner": Inner(np.array([1]), np.array([True]), np.array([7], np.uint64))},
            "Inner.float",
        ),
    ],
)
def test_an_array_of_another_kind_is_refused(changed, name):
    """A kernel would take its bytes for something else."""
    with pytest.raises(TypeError, match=name):
        Handle(some_arrays()._replace(**changed))


class Tables(NamedTuple):
    """Arrays of several dimensions."""

    line: NDArray[np.float64]
    table: NDArray[np.int32]
    block: NDArray[np.float64]


@part
def shake(tables, at):
    """Write into two arrays, one of which may be the other."""
    tables.block[at, 1, 2] += tables.table[1, at] * tables.line[at]
    tables.line[at] += len(tables.line)
    return tables.table.shape[0] + tables.block.size


@hot_kernel
def shake_all(tables, times):
    tables = by_address(tables)
    total = 0
    for i in range(times):
        total += shake(tables, i)
    return total


def test_a_tuple_is_handed_on_by_its_address():
    tables = Tables(np.arange(5.0), np.arange(6, dtype=np.int32).reshape(2, 3), np.ones((3, 2, 4)))
    assert shake_all(tables, 3) == 3 * (2 + 24)
    assert tables.line.tolist() == [5, 6, 7, 3, 4]
    assert tables.block[:, 1, 2].tolist() == [1, 1 + 4 * 1, 1 + 5 * 2]
    assert tables.block.sum() == 24 + 4 + 10
    backwards = Tables(np.arange(5.0)[::-1], tables.table[:, ::-1], np.ones((4, 3, 2)).T)
    assert shake_all(backwards, 2) == 2 * (2 + 24)
    assert backwards.line.tolist() == [9, 8, 2, 1, 0]
    assert backwards.block[:, 1, 2].tolist() == [1 + 5 * 4, 1 + 4 * 3]


def test_a_kernel_that_counts_references_cannot_hand_on_by_address():
    """An array read out of the tuple would be given back without having been taken."""
    tables = Tables(np.arange(5.0), np.arange(6, dtype=np.int32).reshape(2, 3), np.ones((3, 2, 4)))

    @kernel
    def count_and_shake(tables, times):
        tables = by_address(tables)
        for i in range(times):
            line = tables.line
            line[i] += 1
        return shake(tables, 0)

    with pytest.raises(NumbaError, match="by_address is for hot kernels"):
        count_and_shake(tables, 3)


def test_tuples_of_one_name_are_told_apart():
    """As when a notebook's cell is run again with other fields."""

    def lows(*fields):
        kind = NamedTuple("Pair", [(name, NDArray[np.float64]) for name in fields])
        pair, opened = kind(low=np.array([1.0]), high=np.array([2.0])), opener(kind)
        return hot_kernel(lambda where: opened(where).low[0])(Handle(pair).where), low_of(pair)

    assert lows("low", "high") == lows("high", "low") == (1, 1)


@hot_kernel
def low_of(pair):
    return read_low(by_address(pair))


@part
def read_low(pair):
    return pair.low[0]


def test_a_field_that_is_not_there_is_refused():
    @hot_kernel
    def misspelt(where):
        return len(_opened(where).small_ones)

    with pytest.raises(TypingError, match="small_ones"):
        misspelt(Handle(some_arrays()).where)


TRANSCRIPT = """
import json, sys
import numpy as np
import restive as rs
from learning_cases import channels, joint, posed, run_engine, true_bandit
from restive.learn.learners import LEARNERS
from restive.learn.learners import Relative, learner
from restive.measure.replication import replicate
from test_snapshots import FIXED, OPTIONS

said = []
rng = np.random.default_rng(1)
for name, made in LEARNERS.items():
    if getattr(made, "sees", "pulled") == "always":
        continue
    for case, mapping in ((channels, "whittle"), (joint, "myopic")):
        prior, num_pulls = case()
        agent = rs.make_learner(
            name, prior, num_pulls, mapping, 40, seed=3, **OPTIONS.get(name, {})
        )
        for t in range(16):
            arms = agent.select(*((1, [0, 2]) if t == 5 and name not in FIXED else ()))
            states = rng.integers(0, 2, len(arms))
            if t % 5 == 2 and name not in FIXED:
                agent.observe(states[:1], arms=arms[:1], missing="not pulled")
                agent.skip(2)
                agent.pull([1])
                agent.observe([1])
                if isinstance(agent.learner, Relative):
                    agent.observe_late(0, 1, agent.time - 1)
            else:
                agent.observe(states)
            said.append(arms.tolist())
        agent = rs.restore(agent.snapshot())
        said.append(agent.select().tolist())
        said.append(agent.snapshot())
    truth = true_bandit(*channels())
    chosen = learner(name, **OPTIONS.get(name, {}))
    setup = posed(*channels(), "whittle", 25, true_bandit=truth, learner=chosen)
    done = replicate(*setup, np.array([3, 25]), 2, seed=4, with_posterior=True, threads=1)
    said += [done.expected.tolist(), done.realised.tolist(), done.episodes.tolist()]
    said += [done.truth_weights.tolist(), done.oracle_expected.tolist()]
sys.stdout.write(json.dumps(said))
"""


def test_compiled_and_plain_python_do_the_same_for_every_learner():
    """Every way into the kernels: select, observe in part, skip, pull, late news, the engine."""
    found = []
    for disabled in ("0", "1"):
        environment = os.environ | {
            "NUMBA_DISABLE_JIT": disabled,
            "PYTHONPATH": os.path.dirname(__file__),
        }
        command = [sys.executable, "-W", "error", "-c", TRANSCRIPT]
        ran = subprocess.run(command, env=environment, capture_output=True, check=False, text=True)
        assert ran.returncode == 0, ran.stderr[-2000:]
        found.append(ran.stdout)
    assert len(found[0]) > 50_000
    assert found[0] == found[1]
