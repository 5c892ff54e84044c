"""The files for a team's containers: their syntax, and that they name what is there."""

import json
import re
import shlex
from pathlib import Path

import yaml

SOURCE = Path(__file__).parent.parent
TEAM = SOURCE / "examples" / "team"
INSTRUCTIONS = {"FROM", "WORKDIR", "COPY", "RUN", "USER", "EXPOSE", "ENTRYPOINT"}


def test_the_compose_file_is_one():
    found = yaml.safe_load((TEAM / "compose.yaml").read_text())
    assert {name for name in found if not name.startswith("x-")} == {
        "services", "configs", "volumes",
    }  # fmt: skip
    services = found["services"]
    assert set(services) == {"database", "one", "two", "proxy"}
    assert services["one"] == services["two"]
    service = services["one"]
    build = service["build"]
    assert (TEAM / build["context"]).resolve() == SOURCE
    assert (SOURCE / build["dockerfile"]).samefile(TEAM / "Containerfile")
    command, place = service["command"][:2]
    assert command == "serve"
    assert re.fullmatch(r"postgresql://\w+@database/team#\w+", place)  # without a password
    for one in services.values():
        assert set(one.get("depends_on", ())) <= set(services)
        for volume in one.get("volumes", ()):
            assert volume.partition(":")[0] in found["volumes"]
        for config in one.get("configs", ()):
            assert config["source"] in found["configs"]
    proxied = found["configs"]["caddyfile"]["content"]
    assert proxied.count("{") == proxied.count("}")
    assert "reverse_proxy one:8765 two:8765" in proxied


def test_the_container_file_has_instructions_only_and_copies_what_is_there():
    lines = (TEAM / "Containerfile").read_text().splitlines()
    given = [line.split(" ", 1) for line in lines if not line.startswith("#")]
    assert {name for name, _ in given} == INSTRUCTIONS
    (entry,) = [rest for name, rest in given if name == "ENTRYPOINT"]
    assert json.loads(entry) == ["restive"]
    for rest in (rest for name, rest in given if name == "COPY"):
        assert all((SOURCE / one).exists() for one in shlex.split(rest)[:-1])
    steps = [name if name != "RUN" else rest.split()[0] for name, rest in given]
    # by the user who runs them, or nobody could write the cache of kernels, nor read it
    assert steps.index("USER") < steps.index("restive")


def test_the_how_to_says_that_they_are_checked_for_syntax_only_and_names_what_they_have():
    page = (SOURCE / "docs" / "how-to" / "team.md").read_text()
    assert "**They are checked for syntax only**" in page
    compose = (TEAM / "compose.yaml").read_text()
    for url in re.findall(r"postgresql://restive@database/\S+?(?=\")", page):
        assert url in compose
