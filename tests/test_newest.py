"""What `make newest` finds, names and compares; and the pins that it watches."""

import json
import re
import sys
import tomllib
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name
from packaging.version import Version

import newest

PROJECT = tomllib.loads((newest.ROOT / "pyproject.toml").read_text())["project"]
TRIED = re.findall(r"Python :: (3\.\d+)", " ".join(PROJECT["classifiers"]))


def pins(minor):
    """Return the names that are pinned on a Python."""
    lines = (newest.ROOT / "constraints.txt").read_text().splitlines()
    found = [Requirement(line) for line in lines if not line.startswith("#")]
    return [
        canonicalize_name(pin.name)
        for pin in found
        if pin.marker is None or pin.marker.evaluate({"python_version": minor})
    ]


def test_this_python_is_among_those_that_were_tried():
    assert ".".join(map(str, sys.version_info[:2])) in TRIED


def test_each_python_that_was_tried_has_one_pin_of_everything_we_ask_for():
    extras = [line for group in PROJECT["optional-dependencies"].values() for line in group]
    asked = {canonicalize_name(Requirement(line).name) for line in PROJECT["dependencies"] + extras}
    for minor in TRIED:
        found = pins(minor)
        assert sorted(found) == sorted(set(found)), minor
        assert asked - {"restive"} <= set(found)


def fake_python(folder, name, answer):
    folder.mkdir(exist_ok=True)
    made = folder / name
    made.write_text(f"#!/bin/sh\n{answer}\n")
    made.chmod(0o755)
    return str(made)


def test_the_newest_release_of_each_minor_version_is_found(tmp_path, monkeypatch):
    path, elsewhere = tmp_path / "path", tmp_path / "elsewhere"
    fake_python(path, "python3.12", "exit 127")  # a shim of a version that is not in use
    fake_python(path, "python3.13", "echo 3.13.2")
    fake_python(path, "python3.13t", "echo 3.13.9")
    fake_python(path, "python3.10", "echo 3.10.14")
    fake_python(path, "python3.17", "echo 3.17.0a1")
    newer = fake_python(elsewhere, "python3.13", "echo 3.13.11")
    named = fake_python(elsewhere, "python3.15", "echo 3.15.2")
    monkeypatch.setattr(newest, "PLACES", (path, elsewhere, tmp_path / "missing"))
    assert newest.pythons() == {
        (3, 13): (Version("3.13.11"), newer),
        (3, 15): (Version("3.15.2"), named),
    }
    monkeypatch.setattr(newest, "PLACES", (path,))
    monkeypatch.setenv("PYTHONS", named)
    assert {str(version) for version, _ in newest.pythons().values()} == {"3.13.2", "3.15.2"}


def test_what_is_newer_than_its_pin_is_named(tmp_path, monkeypatch):
    lines = [
        "# why",
        "a-b==1.9",
        'old==2.0; python_version < "3.12"',
        'old==3.0; python_version >= "3.12"',
    ]
    (tmp_path / "constraints.txt").write_text("\n".join([*lines, "same==1", "other==1"]))
    monkeypatch.setattr(newest, "ROOT", tmp_path)
    held = {"A_b": "1.10", "old": "3.0", "same": "1.0", "more": "7"}
    python = fake_python(tmp_path, "python", f"echo '{json.dumps(held)}'")
    assert newest.newer_releases(Path(python), "3.13") == ["a-b 1.10 (not ==1.9)"]
    assert newest.newer_releases(Path(python), "3.11")[1:] == ["old 3.0 (not ==2.0)"]


@pytest.fixture
def found(monkeypatch, tmp_path):
    """Three Pythons that are not there; `found.digits` says what each gives."""
    here = sys.version_info[:2]
    given = {sys.executable: ["J 1"], "older": ["J 1"], "newer": ["J 1"], "here": ["J 1"]}
    others = {(3, 1): "older", here: "here", (3, 99): "newer"}
    monkeypatch.setattr(
        newest,
        "pythons",
        lambda: {minor: (Version("3.99.1"), name) for minor, name in others.items()},
    )
    monkeypatch.setattr(newest, "installed", lambda python, folder, pip: python)
    monkeypatch.setattr(newest, "run_pip", lambda *words: None)
    monkeypatch.setattr(newest, "newer_releases", lambda python, minor: [])
    monkeypatch.setattr(newest, "digits", lambda python, whole, environment: given[python])
    return given, others


def test_the_newest_other_python_is_compared_and_with_whole_all(found, capsys):
    given, _ = found
    assert newest.compare(whole=False) == 0
    given["older"] = given["here"] = ["J 2"]
    assert newest.compare(whole=False) == 0
    assert newest.compare(whole=True) == 2
    given["newer"] = ["J 1", "J 3"]
    capsys.readouterr()
    assert newest.compare(whole=False) == 1
    assert "+J 3" in capsys.readouterr().out


def test_a_single_python_is_said_in_one_line(found, capsys):
    _, others = found
    del others[3, 1], others[3, 99]
    assert newest.compare(whole=False) == 0
    assert capsys.readouterr().out.startswith("there is only one Python here")


def test_a_step_that_fails_or_warns_in_our_code_ends_the_list(tmp_path, monkeypatch):
    with pytest.raises(SystemExit, match=r"ended with 2:\n.*nothing\.toml"):
        newest.restive("plan", tmp_path / "nothing.toml")
    told = "/site/restive/x.py:3: DeprecationWarning: old"
    monkeypatch.setattr(sys, "executable", fake_python(tmp_path, "warns", f"echo '{told}' >&2"))
    with pytest.raises(SystemExit, match="DeprecationWarning: old"):
        newest.restive("plan")
