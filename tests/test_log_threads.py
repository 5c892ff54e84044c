"""Logs on several threads: the same numbers, errors and lines as a loop over the rows."""

from __future__ import annotations

import random
import threading
from contextlib import contextmanager

import numpy as np
import pytest

import restive as rs
from log_cases import log_of
from restive import threads
from restive.logs import finite
from restive.logs import log as log_module
from restive.logs.reading import file as file_module
from restive.threads import in_order

COLUMNS = {"time": "at", "arm": "line", "state": "ok"}
THREADS = (1, 2, 3)


@contextmanager
def settings(num_threads, cut=1 << 22, block=1 << 18, weights=1 << 18):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(threads, "available_threads", lambda: num_threads)
        patch.setattr(file_module, "BLOCK_BYTES", cut)
        patch.setattr(file_module, "FEW_BYTES", min(cut, 300))
        patch.setattr(log_module, "BLOCK_ROWS", block)
        patch.setattr(finite, "FEW_WEIGHTS", weights)
        yield


def random_file(rng, quotes, bad):
    """Text of a log, {(arm, step): (state, line)}, and {line: reason} of its bad rows."""
    names = [f"arm {k}" for k in range(12)] + ["x", "y", "é ü", "a very long name of an arm"]
    if quotes:
        names += ['with "quotes"', "with, comma", "two\nlines"]
    places = [(name, t) for name in names for t in range(rng.randrange(2, 30))]
    rng.shuffle(places)
    if rng.random() < 0.5:
        places.sort(key=lambda place: place[1])
    end = rng.choice(["\n", "\r\n"])
    text, line = "at,other,line,ok" + end, 2
    expected, mistakes = {}, {}
    for name, step in places:
        if rng.random() < 0.1:
            text, line = text + end, line + 1
        state = rng.randrange(2)
        field = name
        if quotes and (rng.random() < 0.2 or set(name) & set('",\n')):
            field = '"' + name.replace('"', '""') + '"'
        if rng.random() < 0.2:
            field = f" {field}\t"
        row = f"{step},{rng.choice(['', 'z' * rng.randrange(40)])},{field},{state}"
        if expected and rng.random() < bad:
            row, mistakes[line] = rng.choice([
                (f"{step},,{field},up", "state is 'up', expected"),
                (f"soon,,{field},1", "time is 'soon', expected"),
                (f"{step},,,1", "arm is empty"),
                (f"{step},1", "has another number of fields"),
            ])  # fmt: skip
        else:
            expected[name, step] = (state, line)
        text += row + end
        line += 1 + row.count("\n")
    return text.encode(), expected, mistakes


@pytest.mark.parametrize("seed", range(12))
def test_any_threads_and_any_cut_give_what_a_loop_over_rows_gives(tmp_path, seed):
    rng = random.Random(seed)
    text, expected, mistakes = random_file(rng, quotes=seed % 2 == 1, bad=0.05 * (seed % 3))
    path = tmp_path / "log.csv"
    path.write_bytes(text)
    order = list(dict.fromkeys(name for name, _ in expected))
    for num_threads in THREADS:
        for cut in (rng.randrange(40, 90), rng.randrange(90, 2000), 1 << 22):
            with settings(num_threads, cut, rng.randrange(1, 60)):
                if mistakes:
                    with pytest.raises(rs.errors.LogError) as caught:
                        rs.load_log(path, **COLUMNS)
                    assert [found for found, _ in caught.value.mistakes] == sorted(mistakes)
                    for line, reason in caught.value.mistakes:
                        assert reason.startswith(mistakes[line])
                log = rs.load_log(path, **COLUMNS, skip_bad=True)
                first = min(step for _, step in expected)
                found = {
                    (log.arms[arm], int(step) + first): int(state)
                    for block in log.blocks()
                    for arm, step, state in zip(block.arms, block.steps, block.states, strict=True)
                }
            assert found == {place: state for place, (state, _) in expected.items()}
            # arms are in the order of their first row, good or bad
            assert sorted(log.arms) == sorted(order)
            if not mistakes:
                assert log.arms == tuple(order)


@pytest.mark.parametrize("at", [0, 1, 57, 333, 998, 999])
def test_a_bad_row_anywhere_is_named_with_its_line(tmp_path, at):
    rows = [f"{t},a{t % 7},{t % 2}" for t in range(1000)]
    rows[at] = f"{at},a0,maybe"
    path = tmp_path / "log.csv"
    path.write_text("at,line,ok\n" + "\n".join(rows))
    for num_threads in THREADS:
        for cut in (31, 257, 1 << 22):
            with settings(num_threads, cut), pytest.raises(rs.errors.LogError) as caught:
                rs.load_log(path, **COLUMNS)
            ((line, reason),) = caught.value.mistakes
            assert line == at + 2
            assert reason.startswith("state is 'maybe'")


def test_doubles_are_named_in_the_same_order(tmp_path):
    rng = random.Random(3)
    rows = [(rng.randrange(40), rng.randrange(30)) for _ in range(600)]
    path = tmp_path / "log.csv"
    path.write_text("at,line,ok\n" + "".join(f"{t},a{k},{(t + k) % 2}\n" for t, k in rows))
    said = set()
    for num_threads in THREADS:
        with settings(num_threads, 100), pytest.raises(rs.errors.ProblemError) as caught:
            rs.load_log(path, **COLUMNS)
        said.add(str(caught.value))
    (message,) = said
    assert f"{len(rows) - len(set(rows))} rows are of the same arm and step" in message


def test_a_row_without_end_is_named_with_its_line(tmp_path):
    path = tmp_path / "log.csv"
    path.write_text("at,line,ok\n1,a,1\n\n2,a,0\n" + '3,"' + "x" * 5000 + "\n1,a,0\n")
    for num_threads in THREADS:
        with settings(num_threads, 100), pytest.MonkeyPatch.context() as patch:
            patch.setattr(file_module, "MOST_ROW_BYTES", 1000)
            with pytest.raises(rs.errors.ProblemError, match="line 5 is longer than 1,000 bytes"):
                rs.load_log(path, **COLUMNS)


def test_fits_are_the_same_to_the_bit(tmp_path):
    rng = np.random.default_rng(0)
    seen = np.argwhere(rng.random((80, 60)) < 0.5)
    states = rng.random(len(seen)) < 0.3 + 0.4 * (seen[:, 1] % 2)
    log = log_of(seen[:, 1], seen[:, 0], states.astype(int))
    results = []
    for num_threads in THREADS:
        for block, weights in ((1 << 18, 1 << 18), (97, 5000)):
            with settings(num_threads, block=block, weights=weights):
                fitted = rs.fit_log(log)
                table = fitted.arms
                results.append((
                    *(part.tobytes() for part in (table.active, table.low, table.high)),
                    *(prior.weights.tobytes() for prior in fitted.prior.arms),
                    repr(fitted.checks),
                    repr(fitted.held_out.chain_against_coin),
                ))  # fmt: skip
    assert all(result == results[0] for result in results)


@pytest.mark.parametrize("num_threads", THREADS)
def test_results_come_in_order_and_errors_in_their_turn(num_threads):
    def items():
        yield from range(20)
        raise ValueError("items")

    def slow_first(item):
        if item == 0:
            threading.Event().wait(0.05)
        return item

    def fails(item):
        if item == 7:
            raise KeyError(item)
        return item

    with settings(num_threads):
        for work, error, last in ((slow_first, ValueError, 19), (fails, KeyError, 6)):
            found = []
            with pytest.raises(error):
                found.extend(in_order(work, items()))
            assert found == list(range(last + 1))


def test_who_stops_early_leaves_no_work_behind():
    begun = []
    with settings(2):
        results = in_order(begun.append, range(1000))
        next(results)
        results.close()
    assert len(begun) <= 1 + 2 * (threads.AHEAD + 1)
    assert not [t for t in threading.enumerate() if t.name.startswith("restive-worker")]


@pytest.mark.parametrize("stage", ["reading", "sorting", "counting", "checking", "fitting"])
def test_an_interrupt_is_passed_on_and_leaves_no_thread(tmp_path, stage):
    path = tmp_path / "log.csv"
    path.write_text(
        "at,line,ok\n" + "".join(f"{t},a{k},{t * k % 2}\n" for t in range(60) for k in range(40))
    )

    def interrupt(doing, share):
        if doing == stage:
            raise KeyboardInterrupt

    def loading(share):
        interrupt("reading" if share < 0.9 else "sorting", share)

    def fit():
        log = rs.load_log(path, **COLUMNS, progress=loading)
        return rs.fit_log(log, progress=interrupt).arms

    with settings(3, 500, 100, 1000), pytest.raises(KeyboardInterrupt):
        fit()
    assert not [t for t in threading.enumerate() if t.name.startswith("restive-worker")]
