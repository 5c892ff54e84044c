"""Run pages of the documentation and write what they print into their Output blocks.

    .venv/bin/python docs/outputs.py docs/tutorial.md ...     (all pages without a name)

The tests compare; this replaces. Read the difference before you commit it.
"""

import os
import sys
from pathlib import Path
from tempfile import TemporaryDirectory

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "tests"))

from test_documentation import PAGES, blocks_of, copy_examples, run_page, tidied  # noqa: E402


def refreshed(page: Path) -> str:
    """Return the page's text with its outputs as they are now."""
    text, waiting = page.read_text(encoding="utf-8"), ""
    done = run_page(page)
    assert [block for block, _ in done] == blocks_of(page)
    for block, printed in done:
        if block.title == "Output":
            fence = f'```text title="Output"\n{block.text}```'
            assert fence in text, f"{page}: line {block.line}"
            text = text.replace(fence, f'```text title="Output"\n{tidied(waiting)}\n```', 1)
        waiting = printed
    return text


def main() -> None:
    """Refresh the pages that are named, or all of them."""
    pages = [Path(name).resolve() for name in sys.argv[1:]] or PAGES
    for page in pages:
        with TemporaryDirectory() as folder:
            copy_examples(Path(folder))
            os.chdir(folder)
            text = refreshed(page)
            os.chdir(ROOT)
        if text != page.read_text(encoding="utf-8"):
            page.write_text(text, encoding="utf-8")
            print(f"{page.relative_to(ROOT)}: outputs replaced")


if __name__ == "__main__":
    main()
