"""Numbers with names: arrays of records, most of which hold a single one.

A class that derives from `Block` names the numbers and their types; nothing else is in it:

    class Clock(Block):
        time: int
        share: float

`Records[Clock]` is what a named tuple says of such an array, and `new_record(Clock, time=1)` makes
one. Kernels and Python read and write `block[0].time`, Python more quickly `block["time"][0]`.
Handles hold these arrays like any others, and Numba knows them by its public API.
"""

from __future__ import annotations

from functools import cache
from typing import (
    TYPE_CHECKING,
    Any,
    Protocol,
    SupportsIndex,
    TypeVar,
    get_args,
    get_origin,
    get_type_hints,
    overload,
)

import numpy as np

__all__ = ["Block", "Records", "element_dtype", "new_record", "record_dtype"]

if TYPE_CHECKING:

    class Block:
        """A record; its annotations are its fields."""

else:
    Block = np.record

Record = TypeVar("Record", bound=Block)
Record_co = TypeVar("Record_co", bound=Block, covariant=True)

DTYPES: dict[Any, Any] = {int: np.int64, float: np.float64}


class Records(Protocol[Record_co]):
    """An array of records, to the type checker."""

    @overload
    def __getitem__(self, place: SupportsIndex, /) -> Record_co: ...

    @overload
    def __getitem__(self, name: str, /) -> Any: ...

    def __setitem__(self, name: str, numbers: Any, /) -> None: ...


def record_dtype(kind: Any) -> np.dtype[Any]:
    """Type of the elements of `Records[kind]`."""
    return _record_dtype(kind)


@cache
def _record_dtype(kind: Any) -> np.dtype[Any]:
    fields = [(name, DTYPES.get(hint, hint)) for name, hint in get_type_hints(kind).items()]
    made: np.dtype[Any] = np.dtype((kind, np.dtype(fields, align=True)))
    return made


def element_dtype(hint: Any) -> np.dtype[Any]:
    """Type of the elements of an array that is annotated as `NDArray[...]` or `Records[...]`."""
    if get_origin(hint) is Records:
        return record_dtype(get_args(hint)[0])
    while inner := get_args(hint):  # numpy's alias has one argument or two, the last says the type
        hint = inner[-1]
    made: np.dtype[Any] = np.dtype(hint)
    return made


def new_record(kind: type[Record], **numbers: Any) -> Records[Record]:
    """Return an array of one record; numbers that are not given are 0."""
    block: Records[Record] = np.zeros(1, dtype=record_dtype(kind))
    for name, number in numbers.items():
        block[name] = number
    return block
