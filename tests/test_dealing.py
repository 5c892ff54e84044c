"""Tests that share something costly go to one process."""

from pathlib import Path

from dealing import SHARED, Dealer


def test_files_that_share_something_are_dealt_whole():
    scopes = {
        Dealer._split_scope(None, f"tests/{file}.py::test_{number}[a::b]")
        for file in ("test_browser", "test_reproduction")
        for number in range(3)
    }
    assert len(scopes) == 1
    one, other = (Dealer._split_scope(None, f"tests/test_beliefs.py::test_it[{i}]") for i in (0, 1))
    assert one != other


def test_files_that_are_dealt_whole_are_there():
    there = {path.stem for path in Path(__file__).parent.glob("test_*.py")}
    assert SHARED.keys() <= there
