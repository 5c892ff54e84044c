"""Pages as Jinja2 templates: nothing from elsewhere, readable on a phone, in the dark and in print.

`templates/base.html` is the frame of every page. A page that is one file (`file.html`) has style
sheet and script inside; the operator's pages (`serve/page/operator.html`) ask their server for
them. The template of a page lies beside the module that makes it; its name is its path in the
package. Whatever is put into a template is escaped. What a template made, and our own drawings,
style sheet and script, are `Markup`, which is not.
"""

from __future__ import annotations

import re
from base64 import b64encode
from functools import cache
from hashlib import sha256
from importlib.resources import files
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

from restive.pages.looks import css_variables

if TYPE_CHECKING:  # a template is rendered late, if ever
    from jinja2 import Environment
    from markupsafe import Markup

__all__ = ["anchor", "capitalised", "render", "script", "stylesheet", "templates"]

DATE = re.compile(r"\d{4}-\d\d-\d\d")
VERDICTS = ("holds", "fails", "undecided")  # words that a table colours


def render(name: str, **given: Any) -> Markup:
    """Return what the template of a name makes of what it is given."""
    from markupsafe import Markup

    return Markup(templates().get_template(name).render(given))


@cache
def templates() -> Environment:
    """Return all templates of the package, with what each may use."""
    from jinja2 import Environment, PackageLoader, StrictUndefined
    from markupsafe import Markup

    found = Environment(
        loader=PackageLoader("restive", ""), autoescape=True, undefined=StrictUndefined,
        trim_blocks=True, lstrip_blocks=True, keep_trailing_newline=True, auto_reload=False,
    )  # fmt: skip
    found.filters |= {
        "anchor": anchor, "capitalised": capitalised, "dated": _dated, "digest": _digest,
        "number": _number, "quoted": _quoted,
    }  # fmt: skip
    found.globals |= {
        "stylesheet": Markup(stylesheet()), "script": Markup(script()), "VERDICTS": VERDICTS,
    }  # fmt: skip
    # numbers of charts: short, and in the order in which they were given
    found.policies["json.dumps_kwargs"] = {"separators": (",", ":"), "ensure_ascii": False}
    return found


@cache
def stylesheet() -> str:
    """Return the CSS of every page."""
    return css_variables() + _file("page.css")


@cache
def script() -> str:
    """Return the script of every page: pointer and arrow keys read charts."""
    return _file("charts.js")


def _file(name: str) -> str:
    return (files("restive.pages") / name).read_text(encoding="utf-8")


def _digest(text: str) -> str:
    """Return the hash by which a policy names a style sheet or a script."""
    return f"sha256-{b64encode(sha256(text.encode()).digest()).decode()}"


def _number(value: float | None) -> str:
    """Return a number for a cell, a dash where there is none."""
    return "–" if value is None else f"{value:.3f}"


def capitalised(text: str) -> str:
    """Return a text that begins with a capital letter; others stay as they are."""
    return text[:1].upper() + text[1:]


def _dated(text: str) -> Markup:
    """Return a text whose dates stay whole, where a browser would break them at a hyphen."""
    from markupsafe import Markup, escape

    return Markup(DATE.sub(r'<span class="when">\g<0></span>', str(escape(text))))


def _quoted(name: str) -> str:
    """Return a name as a part of an address, in which a slash is no folder."""
    return quote(name, safe="")


def anchor(title: str) -> str:
    """Return the words of a title as an id or a class."""
    return "-".join("".join(c if c.isalnum() else " " for c in title.lower()).split())
