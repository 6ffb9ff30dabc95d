"""Parts of texts, counted in characters (code points), and patterns without regard to case."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from streamjoin.errors import QueryError

_LONGEST = 2**31 - 1
"""Characters; no text has more."""


def left(texts: Any, count: int) -> Any:
    """The first `count` characters; where it is negative, all but the last."""
    return pc.utf8_slice_codeunits(texts, 0, within(count))


def right(texts: Any, count: int) -> Any:
    """The last `count` characters; where it is negative, all but the first."""
    if count == 0:
        return pc.utf8_slice_codeunits(texts, 0, 0)
    return pc.utf8_slice_codeunits(texts, within(-count))


def within(count: int) -> int:
    """A count of characters, cut to the most that an Arrow slice takes; no text is longer."""
    return max(-_LONGEST, min(count, _LONGEST))


def split_part(texts: Any, separator: str, number: int) -> Any:
    """Part `number` of each text between separators, from 1, or from the end from -1; '' where there is none."""
    if isinstance(texts, pa.Scalar):
        return split_part(pa.array([texts.as_py()], texts.type), separator, number)[0]
    parts = pc.split_pattern(texts, separator)
    starts = parts.offsets.to_numpy()
    first, past = starts[:-1], starts[1:]
    # Beyond all parts, so that no sum leaves int64.
    number = within(number)
    chosen = first + (number - 1) if number > 0 else past + number
    there = (chosen >= first) & (chosen < past)
    found = parts.values.take(pa.array(np.where(there, chosen, 0), mask=~there))
    return pc.if_else(texts.is_valid(), found.fill_null(""), pa.scalar(None, texts.type))


def ilike(texts: Any, pattern: str) -> Any:
    """LIKE, of text and pattern in lower case."""
    return pc.match_like(pc.utf8_lower(texts), pc.utf8_lower(pa.scalar(pattern)).as_py())


def check_part(separator: str | None, number: int | None) -> None:
    """Refuse parts that there cannot be.

    Raises:
        QueryError: without a place.
    """
    if separator == "":
        raise QueryError("SPLIT_PART needs a separator; for single characters write SUBSTRING(text, n, 1)")
    if number == 0:
        raise QueryError("SPLIT_PART counts from 1, or from -1 for the last part; there is no part 0")
