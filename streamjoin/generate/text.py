"""Text columns without a loop over rows: words of random letters, and picks from a short list."""

from __future__ import annotations

from functools import cache

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from streamjoin.generate.counter import Ints, bits

_ALPHABET = np.frombuffer(b"abcdefghijklmnopqrstuvwxyz012345", dtype=np.uint8)
_LETTER_BITS = 5
_LETTERS_PER_DRAW = 64 // _LETTER_BITS


def letters(seed: int, column: str, numbers: Ints, length: int) -> npt.NDArray[np.uint8]:
    """Random words of exactly `length` ASCII characters (a-z, 0-5), uint8 of shape (n, length)."""
    words = np.empty((len(numbers), length), dtype=np.uint8)
    for first in range(0, length, _LETTERS_PER_DRAW):
        draw = bits(seed, f"{column}.{first}", numbers)
        for place in range(first, min(first + _LETTERS_PER_DRAW, length)):
            words[:, place] = _ALPHABET[draw & np.uint64(len(_ALPHABET) - 1)]
            draw >>= np.uint64(_LETTER_BITS)
    return words


def strings(words: npt.NDArray[np.uint8]) -> pa.Array:
    """The rows of `words`, ASCII codes of shape (n, length), as an Arrow string column."""
    count, length = words.shape
    offsets = np.arange(count + 1, dtype=np.int32) * np.int32(length)
    return pa.StringArray.from_buffers(count, pa.py_buffer(offsets), pa.py_buffer(np.ascontiguousarray(words)))


def pick(choices: tuple[str, ...], places: Ints) -> pa.Array:
    """`choices[place]` for each place."""
    return _column(choices).take(pa.array(places))


@cache
def _column(texts: tuple[str, ...]) -> pa.Array:
    # Not where a list of texts is defined: the first `pa.array` of a process imports pandas, for most of a second.
    return pa.array(texts)
