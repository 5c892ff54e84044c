"""No number differs from those stored before the house was rearranged (see `golden_cases`)."""

import json
import os
import subprocess
import sys

import pytest
from numpy._core._multiarray_umath import __cpu_dispatch__, __cpu_features__

from golden_cases import CASES, LEFT_OUT, RENAMED, STORED, differences, golden

ONE_OF_EACH_ROOM = (
    *("chains", "mapping/whittle", "posterior/finite", "learner/channels/tsde", "study/bayesian"),
    *("fit/outreach", "fit/controlled", "replay/outreach", "live/finite"),
)


@pytest.fixture(scope="module")
def stored():
    return json.loads(STORED.read_text(encoding="utf-8"))


def test_every_case_is_stored_and_every_stored_case_is_there(stored):
    assert sorted(CASES) == sorted(stored)


def test_names_are_renamed_one_to_one():
    assert len(set(RENAMED.values())) == len(RENAMED)
    assert not set(RENAMED.values()) & LEFT_OUT


@pytest.mark.parametrize("name", CASES)
def test_numbers_are_those_stored_to_the_bit(name, stored):
    said = differences(golden(name), stored[name])
    assert not said, f"{name}:\n" + "\n".join(said)


def slower_processor():
    """Return an environment in which libraries do without the instructions that came later.

    numpy warns of names of instructions that the processor does not have.
    """
    present = [name for name in __cpu_dispatch__ if __cpu_features__.get(name)]
    return os.environ | {
        "NPY_DISABLE_CPU_FEATURES": " ".join(present),
        "OPENBLAS_CORETYPE": "Prescott",
        "GLIBC_TUNABLES": "glibc.cpu.hwcaps=-AVX2,-FMA,-FMA4,-AVX2_Usable,-FMA_Usable",
    }


def test_another_processor_gives_the_same_bits(stored):
    """One case a room; all of them were compared so when the digests were stored."""
    script = (
        "import json, sys; from golden_cases import golden; "
        "print(json.dumps({name: golden(name) for name in sys.argv[1:]}))"
    )
    done = subprocess.run(
        [sys.executable, "-c", script, *ONE_OF_EACH_ROOM],
        env=slower_processor(), cwd=STORED.parent.parent,
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert not done.returncode, done.stderr
    for name, found in json.loads(done.stdout).items():
        said = differences(found, stored[name])
        assert not said, f"{name}:\n" + "\n".join(said)
