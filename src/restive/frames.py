"""Data frames; pandas comes with `restive[io]` and is loaded when the first one is made."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from restive.errors import RestiveError

__all__ = ["data_frame"]


def data_frame(columns: Mapping[str, Any]) -> Any:
    """Return columns of one length as a data frame, or say how to get pandas."""
    try:
        import pandas
    except ImportError:
        raise RestiveError("data frames need pandas: pip install 'restive[io]'") from None
    return pandas.DataFrame(dict(columns))
