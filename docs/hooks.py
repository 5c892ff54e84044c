"""What happens to pages when the site is built: mkdocs calls these functions by their names.

* A command in a console block loses its prompt, so that what is copied can be run.
* The reference of the command line is made from the code.
"""

from __future__ import annotations

import re
import sys
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parent))

from command_line import commands_page

CONSOLE = re.compile(r"^```(?:console|text|sh)[^\n]*\n.*?^```$", flags=re.DOTALL | re.MULTILINE)
COMMANDS = "<!-- commands -->"


def on_page_markdown(markdown: str, **given: Any) -> str:
    """Return a page's text as it is shown."""
    text = CONSOLE.sub(lambda block: re.sub(r"^\$ ", "", block[0], flags=re.MULTILINE), markdown)
    return text.replace(COMMANDS, commands_page()) if COMMANDS in text else text
