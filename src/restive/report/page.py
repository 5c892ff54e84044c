"""One HTML file: no scripts, no network, readable on a phone and in print."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from html import escape

__all__ = ["code", "figures", "page", "paragraph", "section", "table"]

VERDICTS = ("holds", "fails", "undecided")
STYLE = """
:root { color-scheme: light; }
body { font: 16px/1.5 system-ui, sans-serif; color: #1a1a1a; background: #fff;
       max-width: 62rem; margin: 0 auto; padding: 1rem; overflow-wrap: break-word; }
h1 { font-size: 1.6rem; line-height: 1.25; }
h2 { font-size: 1.25rem; margin-top: 2.2rem; border-bottom: 1px solid #ccc; }
h3 { font-size: 1.05rem; margin-top: 1.6rem; }
.wide { overflow-x: auto; }
table { border-collapse: collapse; font-size: .92rem; margin: .6rem 0; }
th, td { padding: .3rem .6rem; border-bottom: 1px solid #ddd; text-align: left;
         vertical-align: top; }
th { border-bottom: 2px solid #888; }
td.number, th.number { text-align: right; font-variant-numeric: tabular-nums;
                       white-space: nowrap; }
.holds { color: #005a3c; font-weight: 600; }
.fails { color: #a11; font-weight: 600; }
.undecided { color: #7a5200; font-weight: 600; }
@media (max-width: 40rem) {
  .stacked thead { display: none; }
  .stacked tr { display: block; border-bottom: 2px solid #888; padding: .4rem 0; }
  .stacked td { display: block; border: 0; padding: .1rem 0; }
  .stacked td::before { content: attr(data-label) ": "; color: #555; font-weight: 400; }
}
.figures { display: flex; flex-wrap: wrap; gap: .5rem; }
figure { margin: .5rem 0; flex: 1 1 26rem; min-width: 0; max-width: 38rem; }
figure svg { width: 100%; height: auto; }
figcaption { font-size: .9rem; color: #444; }
pre { background: #f5f5f5; padding: .7rem; overflow-x: auto; font-size: .85rem; }
code { font-family: ui-monospace, monospace; font-size: .9em; }
.note { color: #444; font-size: .92rem; }
@media print { body { max-width: none; } h2 { break-after: avoid; }
               figure { break-inside: avoid; } }
"""


def page(title: str, sections: Iterable[str]) -> str:
    """Return a whole page."""
    return (
        '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        # an empty icon: without one a browser asks the server for it
        '<link rel="icon" href="data:,">\n'
        f"<title>{escape(title)}</title>\n<style>{STYLE}</style>\n</head>\n<body>\n"
        f"<h1>{escape(title)}</h1>\n" + "\n".join(sections) + "\n</body>\n</html>\n"
    )


def section(title: str, *parts: str, level: int = 2, anchor: str | None = None) -> str:
    """Return a headed section; the heading's anchor is made of its words."""
    anchor = anchor or "-".join("".join(c if c.isalnum() else " " for c in title.lower()).split())
    heading = f'<h{level} id="{anchor}">{escape(title)}</h{level}>'
    return "\n".join(["<section>", heading, *parts, "</section>"])


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

    On a phone a wide table can be moved sideways; a `stacked` one, for cells of several words,
    shows each row as a block of lines instead.
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
    return (
        f'<div class="wide"><table{kind}>\n<thead><tr>{head}</tr></thead>\n'
        f"<tbody>\n{body}\n</tbody>\n</table></div>"
    )


def figures(pictures: Iterable[tuple[str, str]]) -> str:
    """Return <svg> elements with captions, beside each other where there is room."""
    parts = [
        f'<figure role="img" aria-label="{escape(caption)}">{picture}'
        f"<figcaption>{escape(caption)}</figcaption></figure>"
        for picture, caption in pictures
    ]
    return '<div class="figures">' + "\n".join(parts) + "</div>"


def code(text: str) -> str:
    """Return text as it is."""
    return f"<pre><code>{escape(text)}</code></pre>"
