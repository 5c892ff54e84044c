"""Runs as real processes, whose results folder is attacked at moments that a seed gives.

Whatever happens to the folder, a run ends with everything in place, or with one sentence and
without having made anything anew; and what is left can be completed to the same bytes. `make soak`
does it many more times (RESTIVE_ATTACKS).
"""

import os
import shutil
import signal
from random import Random
from time import sleep

import pytest

from study_cases import (
    FREQUENTIST,
    begin,
    changed,
    changed_text,
    chunk_bytes,
    chunk_paths,
    run,
    shell,
    start,
)

ATTACKS = int(os.environ.get("RESTIVE_ATTACKS", "4"))
TEXT = changed_text(FREQUENTIST, horizon=2000, replications=60)


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory):
    folder = tmp_path_factory.mktemp("undisturbed")
    run(changed(TEXT), folder, size=1)
    return chunk_bytes(folder)


def move(folder, rng):
    folder.rename(folder.with_name("elsewhere"))


def remove(folder, rng):
    while folder.exists():  # a file that is written meanwhile keeps its folder
        shutil.rmtree(folder, ignore_errors=True)


def replace_by_a_link(folder, rng):
    move(folder, rng)
    folder.symlink_to(folder.with_name("elsewhere"))


def replace_by_another(folder, rng):
    move(folder, rng)
    folder.mkdir()
    (folder / "mine.txt").write_text("mine")


def remove_chunks(folder, rng):
    for path in rng.sample(chunk_paths(folder), min(3, len(chunk_paths(folder)))):
        path.unlink()


def remove_a_folder_of_chunks(folder, rng):
    shutil.rmtree(rng.choice(list((folder / "chunks").iterdir())), ignore_errors=True)


def remove_the_lock(folder, rng):
    (folder / "lock").unlink()


def remove_the_manifest(folder, rng):
    (folder / "manifest.json").unlink()


def put_strays(folder, rng):
    case = rng.choice(list((folder / "chunks").iterdir()))
    (case / "0000000003-2.chunk").write_bytes(rng.randbytes(100))
    (case / "notes.txt").write_text("mine")
    with_name_of_the_next = case / f"{rng.randrange(40, 60):010d}-1.chunk"
    if not with_name_of_the_next.exists():
        with_name_of_the_next.mkdir()


def kill(folder, rng):
    """The driver is killed in any case; here nothing else happens."""


ACTIONS = (
    move,
    remove,
    replace_by_a_link,
    replace_by_another,
    remove_chunks,
    remove_a_folder_of_chunks,
    remove_the_lock,
    remove_the_manifest,
    put_strays,
    kill,
)


@pytest.mark.parametrize("number", range(ATTACKS))
def test_a_folder_that_is_attacked(tmp_path, undisturbed, number):
    rng = Random(number)
    action = ACTIONS[number % len(ACTIONS)] if len(ACTIONS) < ATTACKS else rng.choice(ACTIONS)
    text, folder = tmp_path / "study.toml", tmp_path / "out"
    text.write_text(TEXT)
    begin(changed(TEXT), folder, size=1)
    driver = start("run", text, "--out", folder, "--workers", 1 + number % 2)
    wanted = rng.randrange(1, 100)
    while len(chunk_paths(folder)) < wanted and driver.poll() is None:
        sleep(0.005)
    action(folder, rng)
    if action is kill:
        driver.send_signal(signal.SIGKILL)
    out, errors = driver.communicate(timeout=120)
    assert "Traceback" not in errors
    if driver.returncode == 0:
        found = {name: it for name, it in chunk_bytes(folder).items() if name in undisturbed}
        assert found == undisturbed
    elif action is not kill:
        assert driver.returncode == 2
        assert out == ""
        assert errors.startswith("restive: ")
    require_nothing_anew(folder, action)
    there = folder.with_name("elsewhere")
    there = there if there.exists() else folder
    again = shell("run", text, "--out", there)
    if action is remove_the_manifest and again.returncode:
        assert "holds something else already" in again.stderr
        return
    assert again.returncode == 0, again.stderr
    found = {name: it for name, it in chunk_bytes(there).items() if name in undisturbed}
    if action is not remove:  # a run that begins anew has larger chunks
        assert found == undisturbed


def require_nothing_anew(folder, action):
    """Check that a folder which was taken away was not made again."""
    if action in (move, remove):
        assert not folder.exists()
    elif action is replace_by_another:
        assert [path.name for path in folder.iterdir()] == ["mine.txt"]
