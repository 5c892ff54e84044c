"""One HTML file: nothing from the network, readable on a phone, in the dark and in print.

The policy in its head forbids everything but the page's own style sheet and script, by their
hashes: no `style=` attribute, no other script, no request.
"""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Iterable, Sequence
from functools import cache
from hashlib import sha256
from html import escape
from importlib.resources import files

from restive.pages.looks import css_variables

__all__ = [
    "HINT",
    "anchor",
    "attributes",
    "beside",
    "code",
    "folded",
    "page",
    "paragraph",
    "script",
    "section",
    "stylesheet",
    "table",
]

VERDICTS = ("holds", "fails", "undecided")
HINT = "This table is wider than the screen: move it sideways."


def page(title: str, eyebrow: str, verdict: str, lead: Sequence[str], parts: Iterable[str]) -> str:
    """Return a whole page: what it is about, its verdict as the heading, what is behind that."""
    style, scripted = stylesheet(), script()
    policy = (
        f"default-src 'none'; style-src {_hash(style)}; script-src {_hash(scripted)}; "
        "img-src data:; base-uri 'none'; form-action 'none'"
    )
    return "\n".join(
        [
            "<!doctype html>",
            '<html lang="en">\n<head>\n<meta charset="utf-8">',
            f'<meta http-equiv="Content-Security-Policy" content="{policy}">',
            '<meta name="viewport" content="width=device-width, initial-scale=1">',
            # an empty icon: without one a browser asks the server for it
            '<link rel="icon" href="data:,">',
            f"<title>{escape(title)}</title>\n<style>{style}</style>\n</head>\n<body>",
            f'<header class="top"><p class="eyebrow">{escape(eyebrow)}</p>',
            f"<h1>{escape(verdict)}</h1>",
            *(f'<p class="lead">{escape(text)}</p>' for text in lead),
            "</header>",
            *parts,
            f"<script>{scripted}</script>\n</body>\n</html>\n",
        ]
    )


def stylesheet() -> str:
    """Return the CSS of every page."""
    return css_variables() + _file("page.css")


def script() -> str:
    """Return the script of every page: pointer and arrow keys read charts."""
    return _file("page.js")


@cache
def _file(name: str) -> str:
    return (files("restive.pages") / name).read_text(encoding="utf-8")


def _hash(text: str) -> str:
    return f"'sha256-{b64encode(sha256(text.encode()).digest()).decode()}'"


def anchor(title: str) -> str:
    """Return the words of a title as an id or a class."""
    return "-".join("".join(c if c.isalnum() else " " for c in title.lower()).split())


def attributes(**given: str) -> str:
    """Return the attributes of a tag."""
    return "".join(f' {name}="{escape(value)}"' for name, value in given.items())


def section(title: str, *parts: str, level: int = 2) -> str:
    """Return a headed section; the heading's anchor is made of its words."""
    heading = f'<h{level} id="{anchor(title)}">{escape(title)}</h{level}>'
    return "\n".join(["<section>", heading, *parts, "</section>"])


def beside(*parts: str) -> str:
    """Return parts beside each other where there is room."""
    return "\n".join(['<div class="beside">', *parts, "</div>"])


def folded(title: str, *parts: str, about: str = "", unfolded: bool = False) -> str:
    """Return parts that are seen when their title is pressed, and in print."""
    small = f" <small>{escape(about)}</small>" if about else ""
    state = " open" if unfolded else ""
    return "\n".join(
        [f"<details{state}><summary>{escape(title)}{small}</summary>", *parts, "</details>"]
    )


def paragraph(text: str, kind: str | None = None) -> str:
    """Return a paragraph of plain text."""
    attribute = "" if kind is None else f' class="{kind}"'
    return f"<p{attribute}>{escape(text)}</p>"


def table(
    header: Sequence[str],
    rows: Iterable[Sequence[str]],
    numbers: Sequence[int] = (),
    *,
    stacked: bool = False,
) -> str:
    """Return a table; columns in `numbers` are set to the right, and verdicts are coloured.

    On a phone a wide table moves sideways under its first column; a `stacked` one, for cells of
    several words, shows each row as a block of lines instead.
    """

    def cell(tag: str, at: int, text: str) -> str:
        kind = "number" if at in numbers else text if text in VERDICTS else ""
        attribute = f' class="{kind}"' if kind else ""
        if stacked and tag == "td":
            attribute += f' data-label="{escape(header[at])}"'
        return f"<{tag}{attribute}>{escape(text)}</{tag}>"

    head = "".join(cell("th", at, text) for at, text in enumerate(header))
    body = "\n".join(
        "<tr>" + "".join(cell("td", at, text) for at, text in enumerate(row)) + "</tr>"
        for row in rows
    )
    kind = ' class="stacked"' if stacked else ""
    hint = "" if stacked else f'<p class="hint">{HINT}</p>'
    return (
        f'{hint}<div class="wide"><table{kind}>\n<thead><tr>{head}</tr></thead>\n'
        f"<tbody>\n{body}\n</tbody>\n</table></div>"
    )


def code(text: str) -> str:
    """Return text as it is."""
    return f"<pre><code>{escape(text)}</code></pre>"
