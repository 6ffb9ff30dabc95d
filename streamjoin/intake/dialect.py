"""How CSV is written: the characters between and around fields, and what stands for NULL."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Dialect:
    """One way to write CSV.

    Args:
        delimiter: one ASCII character.
        quote: one ASCII character; empty where nothing is quoted.
        null: what stands, without quotes, for NULL.
        header: whether a file begins with a line of column names.
        names: the names of the columns, in place of such a line's; None for those of that line or, without one, those
            of the schema in its order.
    """

    delimiter: str = ","
    quote: str = '"'
    null: str = ""
    header: bool = True
    names: tuple[str, ...] | None = None

    @property
    def delimiter_byte(self) -> int:
        """For compiled code."""
        return ord(self.delimiter)

    @property
    def quote_byte(self) -> int:
        """For compiled code; no byte is equal to it where nothing is quoted."""
        return ord(self.quote) if self.quote else -1


PLAIN = Dialect()
