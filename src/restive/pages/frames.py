"""Data frames; pandas comes with `restive[io]` and is loaded when the first one is made.

Tables that a notebook shows for an object.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from html import escape
from typing import Any

from restive.errors import RestiveError

__all__ = ["data_frame", "html_table"]


def data_frame(columns: Mapping[str, Any]) -> Any:
    """Return columns of one length as a data frame, or say how to get pandas."""
    try:
        import pandas
    except ImportError:
        raise RestiveError("data frames need pandas: pip install 'restive[io]'") from None
    return pandas.DataFrame(dict(columns))


def html_table(
    caption: str, header: Sequence[str], rows: Iterable[Sequence[Any]], left_out: int = 0
) -> str:
    """Return a table as HTML, all text escaped; `left_out` rows are counted below it."""
    head = "".join(f"<th>{escape(name)}</th>" for name in header)
    body = "".join(f"<tr>{''.join(map(_cell, row))}</tr>" for row in rows)
    rest = f"<p>and {left_out:,} more</p>" if left_out else ""
    title = f"<caption>{escape(caption)}</caption>"
    return f"<table>{title}<thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>{rest}"


def _cell(value: Any) -> str:
    if isinstance(value, str):
        return f"<td>{escape(value)}</td>"
    text = f"{value:.6g}" if isinstance(value, float) else str(value)
    return f'<td style="text-align:right">{escape(text)}</td>'
