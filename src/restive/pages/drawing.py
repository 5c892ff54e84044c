"""Matplotlib figures as SVG: by themselves, or in a page whose CSS gives the colours.

Matplotlib writes `style=` attributes, a style sheet and fixed colours. A strict policy forbids the
first two, and fixed colours are wrong on a dark screen. So in a page styles become attributes, and
every colour a CSS variable with the colour of paper behind it: `var(--c0,#0069a8)`.
"""

from __future__ import annotations

import re
import xml.etree.ElementTree as ET
from collections.abc import Iterator, Mapping
from io import StringIO
from pathlib import Path
from typing import TYPE_CHECKING, Any

from restive.files import replacing
from restive.pages.looks import LIGHT

if TYPE_CHECKING:
    from markupsafe import Markup

__all__ = ["page_svg", "write_figure"]

SVG = "{http://www.w3.org/2000/svg}"
HREF = "{http://www.w3.org/1999/xlink}href"
CLASS = "class:"  # begins the id of what a page shall find by its class
VARIABLES = {colour: name for name, colour in LIGHT.items()}
PAINTS = ("fill", "stroke")
NUMBERS = ("d", "x", "y", "transform", "width", "height", "stroke-dasharray")


def page_svg(figure: Any, name: str, attributes: Mapping[str, str] | None = None) -> Markup:
    """Return a figure as an <svg> of a page, with more attributes of its own.

    `name` keeps its ids apart from other figures'. Artists whose gid is "class:" and words have
    these words as classes.
    """
    from markupsafe import Markup

    root = ET.fromstring(_written(figure, name, "none"))
    used = set(re.findall(r'(?:url\(#|href="#)([^")]+)', ET.tostring(root, encoding="unicode")))
    drawn = ET.Element("svg", {"viewBox": root.attrib["viewBox"], "stroke-linejoin": "round"})
    drawn.extend([part for child in root for part in _converted(child, name, used)])
    drawn.attrib |= attributes or {}
    return Markup(ET.tostring(drawn, encoding="unicode").replace(" />", "/>"))


def write_figure(figure: Any, stem: Path) -> list[Path]:
    """Write a figure as .png and .svg; return the paths."""
    paths = [stem.with_suffix(suffix) for suffix in (".png", ".svg")]
    for path in paths:
        with replacing(path) as temporary:
            if path.suffix == ".svg":
                # letters as paths look the same everywhere
                temporary.write_text(_written(figure, stem.name, "path"), encoding="utf-8")
            else:
                figure.savefig(temporary, format="png", metadata={"Software": None})
    return paths


def _written(figure: Any, name: str, letters: str) -> str:
    import matplotlib

    text = StringIO()
    # a salt makes ids the same every time
    with matplotlib.rc_context({"svg.fonttype": letters, "svg.hashsalt": name}):
        figure.savefig(text, format="svg", metadata={"Date": None, "Creator": None})
    return text.getvalue()


def _converted(element: ET.Element, name: str, used: set[str]) -> Iterator[ET.Element]:
    """Yield what a page has of an element: nothing of a style sheet, the parts of a mere group."""
    tag = element.tag.removeprefix(SVG)
    if tag in ("metadata", "style"):
        return
    attributes = dict(_attributes(element, name, used))
    parts = [part for child in element for part in _converted(child, name, used)]
    text = (element.text or "").strip()
    if tag in ("g", "defs") and not parts:
        return
    if tag == "g" and not attributes:
        yield from parts
        return
    found = ET.Element(tag, attributes)
    found.text = text or None
    found.extend(parts)
    yield found


def _attributes(element: ET.Element, name: str, used: set[str]) -> Iterator[tuple[str, str]]:
    given = dict(element.attrib)
    for rule in filter(None, given.pop("style", "").split(";")):
        key, _, value = rule.partition(":")
        given[key.strip()] = value.strip()
    for key, value in given.items():
        if key == "id" and value.startswith(CLASS):
            yield "class", value.removeprefix(CLASS)
        elif key == "id":
            if value in used:
                yield "id", f"{name}-{value}"
        elif key in ("href", HREF):
            yield "href", value.replace("#", f"#{name}-", 1)
        elif key == "clip-path":
            yield key, value.replace("#", f"#{name}-", 1)
        elif key in PAINTS and value != "none":
            yield key, f"var(--{VARIABLES[value]},{value})"
        elif key == "font-size":
            yield key, value.removesuffix("px")
        elif key == "transform" and value.startswith("rotate(-0"):
            pass
        elif key != "font-family":  # the page's
            yield key, _rounded(value) if key in NUMBERS else value


def _rounded(value: str) -> str:
    """Shorten numbers to tenths of a pixel, and paths by the spaces that they do not need."""

    def short(found: re.Match[str]) -> str:
        return f"{float(found[0]):.1f}".removesuffix(".0")

    return re.sub(r"\s*([A-Za-z])\s*", r"\1", re.sub(r"-?\d+\.\d+", short, value)).strip()
