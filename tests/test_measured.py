"""Numbers of the documentation come from code: from blocks that are run, or from what is listed.

A page's blocks are run by `test_documentation`. A number in its prose or tables that no block of
the page shows must stand in a part that a script writes (`<!-- measured: ... -->`), or in a section
that `docs/measured.toml` lists: measured once, by a command and on a date, or given, that is not
computed by us. What was measured without keeping how is listed as such.
"""

from __future__ import annotations

import re
import tomllib
from datetime import date
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
DOCS = ROOT / "docs"
PAGES = [*sorted(DOCS.rglob("*.md")), ROOT / "README.md"]
FENCE = re.compile(r"^(```+)\w*[^\n]*\n.*?^\1$", flags=re.DOTALL | re.MULTILINE)
WRITTEN = re.compile(r"<!-- measured: .*?<!-- end -->", flags=re.DOTALL)
CODE = re.compile(r"`[^`\n]*`|\]\([^)\s]*\)")
NUMBER = re.compile(r"(?<![\w./])\d[\d,]*\.\d+%?|(?<![\w.])\d[\d,]*%|± ?\d[\d.,]*")
LEVELS = {"90%", "95%", "99%", "100%", "0%"}  # of intervals, and of everything and nothing


def listed():
    """Entries by page and section."""
    entries = tomllib.loads((DOCS / "measured.toml").read_text(encoding="utf-8"))
    found = {}
    for kind in ("measured", "given"):
        for entry in entries[kind]:
            key = entry["page"], entry["section"]
            assert key not in found, f"{key} is listed twice"
            found[key] = kind, entry
    return found


def blank(match):
    return "\n" * match[0].count("\n")


def unexplained(page):
    """Yield (section, line, numbers) where no block of the page shows them."""
    source = page.read_text(encoding="utf-8")
    shown = " ".join(match[0] for match in FENCE.finditer(source))
    rest = CODE.sub("", WRITTEN.sub(blank, FENCE.sub(blank, source)))
    section = ""
    for number, line in enumerate(rest.split("\n"), 1):
        if line.startswith("#"):
            section = line.lstrip("# ").strip()
            continue
        found = [n for n in NUMBER.findall(line) if n not in LEVELS]
        found = [
            n for n in found if not re.search(rf"(?<![\d.]){re.escape(n.strip('± %'))}", shown)
        ]
        if found:
            yield section, number, found


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_numbers_are_shown_by_code_or_listed(page):
    known = listed()
    name = str(page.relative_to(ROOT))
    for section, line, numbers in unexplained(page):
        assert (name, section) in known, (
            f"{name}:{line}: {', '.join(numbers)} in the section {section!r}: let a block print "
            "it, or list the section in docs/measured.toml with its command and date"
        )


def test_what_is_listed_is_there_and_says_how():
    commands = {"restive", "python", "make"}
    used = {
        (str(page.relative_to(ROOT)), section)
        for page in PAGES
        for section, _, _ in unexplained(page)
    }
    for key, (kind, entry) in listed().items():
        assert key in used, f"{key}: there is no such section, or it needs no entry"
        if kind != "measured":
            assert entry["what"]
            continue
        assert isinstance(entry["date"], date)
        assert entry["command"].split()[0] in commands
        for word in entry["command"].split():
            if word.endswith(".py") and word.startswith(("docs/", "examples/", "benchmarks/")):
                assert (ROOT / word).exists(), f"{key}: there is no {word}"
