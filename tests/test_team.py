"""The files for a team's containers: their syntax, and that they name what is there."""

import json
import re
from pathlib import Path

import yaml

TEAM = Path(__file__).parent.parent / "examples" / "team"
INSTRUCTIONS = {"FROM", "ENV", "RUN", "USER", "EXPOSE", "ENTRYPOINT"}


def test_the_compose_file_is_one():
    found = yaml.safe_load((TEAM / "compose.yaml").read_text())
    assert set(found) == {"services", "volumes"}
    assert set(found["services"]) == {"database", "restive", "proxy"}
    service = found["services"]["restive"]
    assert service["deploy"]["replicas"] == 2
    assert (TEAM / service["build"]["dockerfile"]).is_file()
    command, place = service["command"][:2]
    assert command == "serve"
    assert re.fullmatch(r"postgresql://\w+@database/team#\w+", place)  # without a password


def test_the_container_file_has_instructions_only():
    lines = (TEAM / "Containerfile").read_text().splitlines()
    given = [line.split(" ", 1) for line in lines if not line.startswith("#")]
    assert {name for name, _ in given} == INSTRUCTIONS
    (entry,) = [rest for name, rest in given if name == "ENTRYPOINT"]
    assert json.loads(entry) == ["restive"]
