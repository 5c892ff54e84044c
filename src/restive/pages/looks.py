"""Colours, dashes and markers, on paper and on a dark screen.

Lines differ in colour, dash and marker, so that they can be told apart in grey and by the
colour-blind. Every colour of a line or of letters has a contrast of at least 4.5 : 1 to what is
behind it, light and dark.
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Any

from restive.errors import RestiveError

__all__ = [
    "DARK",
    "LIGHT",
    "NUM_HUES",
    "Look",
    "css_variables",
    "look",
    "matplotlib_figures",
    "settings",
]

# Blue, vermilion, green, purple, ochre, crimson, indigo, teal.
LIGHT: Mapping[str, str] = {
    "c0": "#0069a8", "c1": "#b8480a", "c2": "#00795a", "c3": "#8a4f9e",
    "c4": "#7d6000", "c5": "#b8255f", "c6": "#4b55c4", "c7": "#00717d",
    "ink": "#1a1d21", "mute": "#555d66", "rule": "#d9dde2", "paper": "#ffffff", "wash": "#f4f5f7",
    "holds": "#00623f", "fails": "#a81616", "undecided": "#7a5200", "shade": "#00000033",
}  # fmt: skip
DARK: Mapping[str, str] = {
    "c0": "#56b4e9", "c1": "#f0934a", "c2": "#4cc9a0", "c3": "#d39be0",
    "c4": "#d9b740", "c5": "#ff8fa8", "c6": "#a9b1ff", "c7": "#5ccbd6",
    "ink": "#e8eaed", "mute": "#a3abb5", "rule": "#363c44", "paper": "#15181c", "wash": "#1f242a",
    "holds": "#5fd0a4", "fails": "#ff9a90", "undecided": "#e3b84e", "shade": "#ffffff40",
}  # fmt: skip
NUM_HUES = 8
DASHES: tuple[Any, ...] = (
    "-", (0, (5, 1.6)), (0, (5, 1.4, 1.2, 1.4)), (0, (1.3, 1.1)), (0, (8, 2)),
    (0, (4, 1.2, 1.2, 1.2, 1.2, 1.2)),
)  # fmt: skip
MARKERS = ("o", "s", "^", "D", "v", "P", "X", "p")
LETTERS = 12.5  # points, which a page shows as pixels where a chart is 360 wide


@dataclass(frozen=True)
class Look:
    """How a line is drawn."""

    variable: str  # of its colour
    colour: str  # on paper
    dash: Any
    marker: str


def look(number: int) -> Look:
    """Return the look of the line of a number: the first 64 differ from each other."""
    style = number + number // NUM_HUES  # a colour that comes again has another dash and marker
    variable = f"c{number % NUM_HUES}"
    return Look(
        variable, LIGHT[variable], DASHES[style % len(DASHES)], MARKERS[style % len(MARKERS)]
    )


def matplotlib_figures() -> Any:
    """Return matplotlib's module of figures, or say how to get it."""
    try:
        import matplotlib.figure as figures
    except ImportError:
        raise RestiveError("pictures need matplotlib: pip install 'restive[plot]'") from None
    return figures


def settings() -> AbstractContextManager[None]:
    """Return a context in which matplotlib draws in this style, in notebooks as on pages."""
    matplotlib_figures()
    import matplotlib
    from cycler import cycler

    hues = [LIGHT[f"c{hue}"] for hue in range(NUM_HUES)]
    chosen: Any = {
        "axes.axisbelow": True,
        "axes.edgecolor": LIGHT["mute"],
        "axes.grid": True,
        "axes.labelcolor": LIGHT["mute"],
        "axes.labelsize": LETTERS,
        "axes.linewidth": 0.8,
        "axes.prop_cycle": cycler(color=hues),
        "axes.spines.right": False,
        "axes.spines.top": False,
        "axes.titlecolor": LIGHT["mute"],
        "axes.titlesize": LETTERS,
        "font.size": LETTERS,
        "grid.color": LIGHT["rule"],
        "grid.linewidth": 0.7,
        "legend.frameon": False,
        "legend.labelcolor": LIGHT["ink"],
        "lines.linewidth": 1.7,
        "lines.markersize": 5,
        "text.color": LIGHT["ink"],
        "text.parse_math": False,  # a dollar in a name is a dollar
        "xtick.color": LIGHT["mute"],
        "xtick.major.size": 0,
        "xtick.labelsize": LETTERS,
        "ytick.color": LIGHT["mute"],
        "ytick.major.size": 0,
        "ytick.labelsize": LETTERS,
    }
    context: AbstractContextManager[None] = matplotlib.rc_context(chosen)
    return context


def css_variables() -> str:
    """Return the colours as CSS: by what the reader prefers, and those of paper in print."""
    light, dark = (
        "".join(f"--{name}:{colour};" for name, colour in colours.items())
        for colours in (LIGHT, DARK)
    )
    return (
        f":root{{color-scheme:light dark;{light}}}\n"
        f"@media (prefers-color-scheme:dark){{:root{{{dark}}}}}\n"
        f"@media print{{:root{{color-scheme:light;{light}}}}}\n"
    )
