"""No number differs from those stored before the house was rearranged (see `golden_cases`)."""

import json

import pytest

from golden_cases import CASES, LEFT_OUT, RENAMED, STORED, differences, golden


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
