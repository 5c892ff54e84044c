"""What an object holds as a table: a data frame, or what a notebook shows of it.

pandas comes with `restive[io]`; it and the templates are loaded when the first table is made.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
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
    """Return a table as HTML; `left_out` rows are counted below it."""
    from restive.pages.page import render  # late: every object imports this module

    name = "pages/templates/notebook_table.html"
    return render(name, caption=caption, header=header, rows=rows, left_out=left_out)
