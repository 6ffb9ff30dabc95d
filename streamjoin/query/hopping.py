"""TUMBLE and HOP, an item of GROUP BY: the windows of time that groups are made in.

TUMBLE(1 MINUTE)                  each minute
HOP(10 SECONDS, 1 MINUTE)         the minute before every tenth second
"""

from __future__ import annotations

from dataclasses import dataclass

from sqlglot import Token, TokenType

from streamjoin.errors import QueryError
from streamjoin.plan.aggregate import PANES_MAX, Hopping
from streamjoin.plan.window import format_us
from streamjoin.query.durations import UNITS_US
from streamjoin.query.source import Range
from streamjoin.query.spans import span_at
from streamjoin.query.tokens import Words

STAND_IN = "\0window"
"""The name that stands in the parser's words for the window; no text can contain it."""
_EXAMPLES = {"TUMBLE": "TUMBLE(1 MINUTE)", "HOP": "HOP(10 SECONDS, 1 MINUTE)"}
_ELSEWHERE = ("SESSION", "SESSION_WINDOW", "CUMULATE")
"""What windows are called in other systems that have no counterpart here, whatever stands in their brackets."""
_UNITS = frozenset(name + plural for name in UNITS_US for plural in ("", "S"))
_TAKES = {"TUMBLE": "the size of the windows", "HOP": "how far they are apart and their size"}


@dataclass(frozen=True, slots=True)
class WrittenWindow:
    """A window as the query has it."""

    windows: Hopping
    where: Range


def take_hopping(words: Words) -> tuple[Words, WrittenWindow | None]:
    """The words with a name in the window's place, and the window; None without one.

    Raises:
        QueryError: it cannot be read, stands elsewhere than in GROUP BY, or stands twice.
        UnsupportedQueryError: it is a window of another kind.
    """
    grouped = next((at for at in range(len(words.tokens)) if words.kind(at) == TokenType.GROUP_BY), len(words.tokens))
    for place in range(grouped + 1, len(words.tokens)):
        _check_other_window(words, place)
    places = [place for place in range(len(words.tokens)) if _is_window(words, place)]
    if not places:
        return words, None
    if places[0] < grouped:
        name = words.text(words.tokens[places[0]]).upper()
        raise words.source.wrong(f"{name} stands in GROUP BY, such as GROUP BY R.k, {_EXAMPLES[name]}",
                                 words.range(places[0]))  # fmt: skip
    if len(places) > 1:
        raise words.source.wrong("GROUP BY has one window of time", words.range(places[1]))
    (place,) = places
    reader = _Reader(words, place)
    windows = reader.window()
    first = words.tokens[place]
    stand_in = Token(TokenType.VAR, STAND_IN, first.line, first.col, first.start, words.tokens[reader.place - 1].end)
    tokens = (*words.tokens[:place], stand_in, *words.tokens[reader.place :])
    return Words(words.source, tokens), WrittenWindow(windows, (stand_in.start, stand_in.end))


def _is_window(words: Words, place: int) -> bool:
    named = words.kind(place - 1) in (TokenType.DOT, TokenType.ALIAS)
    return words.is_word(place, *_EXAMPLES) and words.kind(place + 1) == TokenType.L_PAREN and not named


def _check_other_window(words: Words, place: int) -> None:
    """Refuse windows that other systems have: a name that is known for one, or any with a span in its brackets."""
    is_item = words.kind(place - 1) in (TokenType.GROUP_BY, TokenType.COMMA)
    if words.kind(place + 1) != TokenType.L_PAREN or not is_item or words.is_word(place, *_EXAMPLES):
        return
    has_span = words.kind(place + 2) == TokenType.NUMBER and words.is_word(place + 3, *_UNITS)
    if has_span or words.is_word(place, *_ELSEWHERE):
        raise words.source.unsupported(
            f"there are no windows called {words.text(words.tokens[place])}; windows are TUMBLE(1 MINUTE), each "
            "minute, and HOP(10 SECONDS, 1 MINUTE), the minute before every tenth second",
            words.range(place),
        )


class _Reader:
    """Reads a window from the word at `place` on; afterwards `place` is the first word past it."""

    def __init__(self, words: Words, place: int) -> None:
        self.words = words
        self.place = place + 1
        self.name = words.text(words.tokens[place]).upper()
        self.start = place

    def window(self) -> Hopping:
        spans = [self._span_us()]
        while self.words.kind(self.place) == TokenType.COMMA:
            spans.append(self._span_us())
        if self.words.kind(self.place) != TokenType.R_PAREN or len(spans) != (1 if self.name == "TUMBLE" else 2):
            raise self._wrong(f"{self.name} takes {_TAKES[self.name]}, such as {_EXAMPLES[self.name]}", self.place)
        self.place += 1
        windows = Hopping(spans[0], spans[-1])
        if windows.slide_us > windows.size_us:
            raise self._wrong(
                f"windows of {format_us(windows.size_us)} every {format_us(windows.slide_us)} leave gaps, and what "
                "falls into them would be lost; HOP takes how far windows are apart first, then their size",
                self.start,
            )
        if windows.size_us // windows.pane_us > PANES_MAX:
            raise self._wrong(
                f"these windows are made of {windows.size_us // windows.pane_us:,} parts of "
                f"{format_us(windows.pane_us)}, and {PANES_MAX:,} is the most; let one span be a multiple of the "
                "other",
                self.start,
            )
        return windows

    def _span_us(self) -> int:
        """The span behind the bracket or comma at `place`."""
        at = self.place + 1
        span_us = span_at(self.words, at, self.name, _TAKES[self.name], _EXAMPLES[self.name])
        self.place = at + 2
        return span_us

    def _wrong(self, message: str, place: int) -> QueryError:
        return self.words.source.wrong(message, self.words.range(place))
