"""What the documentation shows is executed, and the site is built.

The blocks of a page run in order, in a directory of their own that holds a copy of `examples`, as
the source folder does:

* python blocks share one namespace per page; one that prints is followed by its output;
* toml blocks with a title are whole problems, studies (..._study.toml) or settings of a live agent
  (settings.toml), written to the file of that name for later blocks;
  those without are pieces, which must be TOML;
* console blocks: each line `$ restive ...` is run and must succeed, or end with the status that its
  comment says, as `# ends with 2`: then what it says on stderr is shown, too; other commands are
  not run;
* text blocks with the title Output are exactly what the block before them printed.

What is not to be run (a command of many minutes) stands in an sh block.
"""

import importlib
import io
import os
import re
import shlex
import shutil
import subprocess
import sys
import tomllib
from contextlib import redirect_stderr, redirect_stdout
from html.parser import HTMLParser
from inspect import signature
from pathlib import Path
from typing import NamedTuple

import pytest

import restive as rs
from restive.cli import app, main
from restive.problem.arm_tables import ARM_KEYS
from restive.problem.changing_file import load_any_problem
from restive.problem.problem_file import PROBLEM_KEYS
from restive.problem.toml_text import read_text

ROOT = Path(__file__).parent.parent
DOCS = ROOT / "docs"
PAGES = sorted(DOCS.rglob("*.md"))
FENCE = re.compile(
    r'^(?P<fence>```+)(?P<language>\w+)(?: title="(?P<title>[^"]+)")?\n(?P<text>.*?)^(?P=fence)$',
    flags=re.DOTALL | re.MULTILINE,
)
LANGUAGES = {"python", "toml", "console", "text", "sh", "json"}


class Block(NamedTuple):
    language: str
    title: str | None
    text: str
    line: int  # of the fence, from 1


def blocks_of(page: Path) -> list[Block]:
    source = page.read_text(encoding="utf-8")
    return [
        Block(m["language"], m["title"], m["text"], source.count("\n", 0, m.start()) + 1)
        for m in FENCE.finditer(source)
    ]


def run_python(block: Block, page: Path, namespace: dict[str, object]) -> str:
    code = compile("\n" * block.line + block.text, str(page), "exec")  # tracebacks name the line
    printed = io.StringIO()
    with redirect_stdout(printed):
        exec(code, namespace)
    return printed.getvalue()


def run_console(block: Block) -> str:
    printed = ""
    for line in block.text.splitlines():
        if line.startswith("$ restive "):
            words = shlex.split(line.removeprefix("$ restive "), comments=True)
            status, out, errors = in_this_process(words)
            said = re.search(r"# ends with (\d)$", line)
            assert status == (int(said[1]) if said else 0), f"{line}\n{errors}"
            printed += out + (errors if said else "")
    return printed


def in_this_process(words: list[str]) -> tuple[int, str, str]:
    """Run a command as its own process would, which would spend its time on imports."""
    out, errors = io.StringIO(), io.StringIO()
    with pytest.MonkeyPatch.context() as patch, redirect_stdout(out), redirect_stderr(errors):
        patch.setattr(sys, "argv", ["restive", *words])
        with pytest.raises(SystemExit) as ended:
            main()
    return ended.value.code or 0, out.getvalue(), errors.getvalue()


def run_page(page: Path) -> list[tuple[Block, str]]:
    """Run the blocks of a page in the current directory: each with what it printed."""
    namespace: dict[str, object] = {"__name__": "__main__"}
    done = []
    for block in blocks_of(page):
        printed = ""
        if block.language == "python":
            printed = run_python(block, page, namespace)
        elif block.language == "console":
            printed = run_console(block)
        elif block.language == "toml" and block.title is None:
            tomllib.loads(block.text)
        elif block.language == "toml":
            Path(block.title).write_text(block.text, encoding="utf-8")
            loads = {"study.toml": rs.load_study, "settings.toml": read_text}
            load = loads.get(block.title.rpartition("_")[2], load_any_problem)
            load(block.title)
        done.append((block, printed))
    return done


def copy_examples(folder: Path) -> None:
    """Copy the examples' files into a folder, so that pages find them as in the source folder."""
    for example in (*(ROOT / "examples").rglob("*.toml"), *(ROOT / "examples").glob("logs/*.csv")):
        target = folder / example.relative_to(ROOT)
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(example, target)


def tidied(text: str) -> str:
    return "\n".join(line.rstrip() for line in text.rstrip().splitlines())


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(DOCS)))
def test_page_runs_and_prints_what_it_shows(
    page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    copy_examples(tmp_path)
    monkeypatch.chdir(tmp_path)
    before, waiting = None, ""  # the block before, and what it printed that is not shown yet
    for block, printed in run_page(page):
        if block.title == "Output":
            assert before in ("python", "console"), f"line {block.line}: output of what?"
            assert tidied(waiting) == tidied(block.text), f"line {block.line}"
        else:
            assert not (before == "python" and waiting), f"output above line {block.line} not shown"
        before, waiting = block.language, printed
    assert not (before == "python" and waiting), "output at the end is not shown"


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(DOCS)))
def test_page_has_only_blocks_that_are_understood(page: Path) -> None:
    source = page.read_text(encoding="utf-8")
    blocks = blocks_of(page)
    assert 2 * len(blocks) == len(re.findall(r"^ *```", source, flags=re.MULTILINE))
    assert {block.language for block in blocks} <= LANGUAGES


class Assets(HTMLParser):
    """Everything that a browser loads by itself with a page."""

    def __init__(self) -> None:
        super().__init__()
        self.found: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = dict(attrs)
        if tag in ("script", "img", "iframe", "source", "object", "embed"):
            self.found.append(given.get("src") or given.get("data") or "")
        elif tag == "link" and given.get("rel") != "canonical":
            self.found.append(given.get("href") or "")


def test_site_builds_without_warnings_and_loads_nothing_from_elsewhere(tmp_path: Path) -> None:
    done = subprocess.run(  # not with --quiet, which hides warnings from --strict too
        [sys.executable, "-m", "mkdocs", "build", "--strict", "--site-dir", tmp_path],
        cwd=ROOT, env=os.environ | {"NO_MKDOCS_2_WARNING": "1"}, capture_output=True, text=True,
        check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert "WARNING" not in done.stderr
    for page in PAGES:
        built = tmp_path / page.relative_to(DOCS).with_suffix(".html")
        assets = Assets()
        assets.feed(built.read_text(encoding="utf-8"))
        assert assets.found
        assert not [asset for asset in assets.found if "//" in asset]


def test_the_page_on_problem_files_has_every_key() -> None:
    page = (DOCS / "how-to/own-problem.md").read_text(encoding="utf-8")
    top, arm = page.split("## Keys")[1].split("In `[[arm]]`, ")
    named = [set(re.findall(r"^\| `([^`]+)`", table, re.M)) for table in (top, arm)]
    assert named[0] == {"[[arm]]" if key == "arm" else key for key in PROBLEM_KEYS} | {"[[change]]"}
    assert named[1] >= set(ARM_KEYS)


def test_every_public_name_is_in_the_reference() -> None:
    described = {
        name
        for page in (DOCS / "reference").glob("*.md")
        for name in re.findall(r"^::: restive(?:\.\w+)*\.(\w+)$", page.read_text(), re.MULTILINE)
    }
    spaces = ("types", "policies", "theory", "registry")
    named = set(rs.__all__).union(*(getattr(rs, space).__all__ for space in spaces))
    assert named - {"__version__", "errors", *spaces} <= described


@pytest.fixture
def hooks(monkeypatch: pytest.MonkeyPatch) -> object:
    """What mkdocs calls when it builds the site."""
    monkeypatch.syspath_prepend(str(DOCS))
    return importlib.import_module("hooks")


def test_what_is_copied_from_a_page_can_be_run(hooks) -> None:
    prompts = 0
    for page in PAGES:
        source = page.read_text(encoding="utf-8")
        shown = hooks.on_page_markdown(source)
        prompts += len(re.findall(r"^\$ ", source, flags=re.MULTILINE))
        assert not re.search(r"^\$ ", shown, flags=re.MULTILINE), page
    assert prompts > 10


def test_the_reference_has_every_command_with_every_option(hooks) -> None:
    page = hooks.on_page_markdown((DOCS / "reference" / "command-line.md").read_text())
    for command in app.registered_commands:
        name = command.name or command.callback.__name__.replace("_", "-")
        section = page.partition(f"## restive {name}\n")[2].partition("\n## ")[0]
        assert section, name
        assert section.count("\n| `") == len(signature(command.callback).parameters), name
    for group in app.registered_groups:
        assert f"## restive {group.name}\n" in page
        assert page.count(f"### restive {group.name} ") == len(
            group.typer_instance.registered_commands
        )


def test_the_first_page_has_three_doors_and_names_the_commands() -> None:
    first = (DOCS / "index.md").read_text(encoding="utf-8")
    for door in ("You run something", "You study learning", "You write a program"):
        assert f"**{door}" in first
    for command in ("fit", "plan", "pick", "live", "serve", "compare", "replay", "warm-up"):
        assert f"restive {command}" in first, command
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    assert "pip install 'restive[serve]'" in readme
    assert "restive warm-up" in readme[readme.index("## Install") : readme.index("## First steps")]
