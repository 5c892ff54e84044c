"""What all pages share: head, menu, links, and numbers in words."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from html import escape
from urllib.parse import quote, urlencode

from restive.pages.page import HINT
from restive.serve.auth import Caller

__all__ = ["arm_link", "document", "link", "linked_table", "number", "query"]

MENU = (("/", "Today"), ("/arms", "Arms"), ("/known", "What is known"))


def document(
    title: str, heading: str, parts: Iterable[str], caller: Caller | None = None, here: str = ""
) -> str:
    """Return a whole page; without a caller, one that anybody may see."""
    forgery = "" if caller is None else f'<meta name="forgery" content="{caller.forgery}">'
    return "\n".join(
        [
            '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">',
            '<meta name="viewport" content="width=device-width, initial-scale=1">',
            '<link rel="icon" href="data:,"><link rel="stylesheet" href="/static/page.css">',
            f"{forgery}<title>{escape(title)} · restive</title>",
            '<script src="/static/charts.js" defer></script>',
            '<script src="/static/page.js" defer></script>\n</head>\n<body>',
            _menu(caller, here),
            f"<header class='top'><h1>{escape(heading)}</h1></header>",
            "<main>",
            *parts,
            "</main>\n</body>\n</html>\n",
        ]
    )


def _menu(caller: Caller | None, here: str) -> str:
    if caller is None:
        return ""
    items = "".join(
        f'<a href="{path}"{" aria-current=page" if path == here else ""}>{name}</a>'
        for path, name in MENU
    )
    who = escape(f"{caller.token.name} ({caller.token.role})")
    return (
        f'<nav>{items}<form method="post" action="/logout"><span>{who}</span>'
        "<button>Sign out</button></form></nav>"
    )


def link(address: str, text: str) -> str:
    """Return a link."""
    return f'<a href="{escape(address)}">{escape(text)}</a>'


def arm_link(name: str) -> str:
    """Return a link to the page of an arm."""
    return link(f"/arms/{quote(name, safe='')}", name)


def query(path: str, **given: object) -> str:
    """Return an address with a query."""
    return f"{path}?{urlencode(given)}"


def number(value: float | None, digits: int = 3) -> str:
    """Return a number for a cell, a dash where there is none."""
    return "–" if value is None else f"{value:.{digits}f}"


def linked_table(header: Sequence[str], rows: Iterable[Sequence[str]], right: int) -> str:
    """Return a table of HTML cells; columns from number `right` on are set to the right."""

    def cells(tag: str, row: Sequence[str]) -> str:
        kinds = ["" if at < right else ' class="number"' for at in range(len(row))]
        return "".join(
            f"<{tag}{kind}>{cell}</{tag}>" for kind, cell in zip(kinds, row, strict=True)
        )

    body = "\n".join(f"<tr>{cells('td', row)}</tr>" for row in rows)
    return (
        f'<p class="hint">{HINT}</p><div class="wide"><table>'
        f"<thead><tr>{cells('th', header)}</tr></thead>"
        f"<tbody>\n{body}\n</tbody></table></div>"
    )
