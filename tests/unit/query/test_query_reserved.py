"""Names that stand in a query only in double quotes: the dashboard's templates write all of these so."""

from __future__ import annotations

import re
from pathlib import Path

import pyarrow as pa
import pytest

from streamjoin.errors import InputError
from streamjoin.plan.schema import StreamSchema
from streamjoin.query import plan_query
from streamjoin.query.tokens import DIALECT

pytestmark = pytest.mark.slow

PAGE = Path(__file__).parents[3] / "frontend" / "src" / "pages" / "join" / "reserved.ts"
OWN = "online within emit every cumulative tumble hop rows version asof semi anti positional broadcast unknown extract"
FORMS = [
    "SELECT ONLINE {a}.k, {b}.x FROM {a}, {b} WHERE {a}.k = {b}.k WITHIN 10 SECONDS",
    "SELECT ONLINE {a}.k, {b}.x\nFROM {a} ASOF LEFT JOIN {b}\nON {a}.k = {b}.k AND {a}.ts >= {b}.ts",
    "SELECT ONLINE {a}.*\nFROM {a} LEFT ANTI JOIN {b}\nON {a}.k = {b}.k\nWITHIN 10 SECONDS",
    "SELECT ONLINE {a}.k, COUNT(*) AS n\nFROM {a}, {b}\nWHERE {b}.k BETWEEN {a}.k - 10 AND {a}.k + 10\n"
    "WITHIN 10 SECONDS\nGROUP BY {a}.k\nEMIT EVERY 1 SECOND",
    "SELECT ONLINE r.{a}, s.x AS {b} FROM r, s WHERE r.k = s.k WITHIN 10 SECONDS",
]


def known_words() -> set[str]:
    """Single words that the parser or the language has a meaning for."""
    tables = (DIALECT.tokenizer_class.KEYWORDS, DIALECT.parser_class.NO_PAREN_FUNCTION_PARSERS)
    found = {word.lower() for table in tables for phrase in table for word in phrase.split()}
    return {word for word in found | set(OWN.split()) if re.fullmatch(r"[a-z_]\w*", word)}


def is_taken(word: str, written: str) -> bool:
    """Whether a word can be the name of a stream, of a column and of a result, written like this."""
    columns = pa.schema([(name, pa.int64()) for name in dict.fromkeys(("ts", "k", "x", word))])
    streams = {name: StreamSchema(name, columns, "ts", "us") for name in ("r", "s", word)}
    try:
        for form in FORMS:
            for a, b in (
                ((written, "s"), ("r", written)) if "r, s" not in form else ((written, f"{word}_2"), ("k", written))
            ):
                plan_query(form.format(a=a, b=b), streams)
    except InputError:
        return False
    return True


def test_templates_quote_every_word_that_is_no_name() -> None:
    listed = "".join(re.findall(r"'([a-z_ ]*)'(?: \+|\n)", PAGE.read_text())).split()
    words = known_words()
    assert len(words) > 250 and listed == sorted(set(listed))
    assert {word for word in words if not is_taken(word, word)} - set(listed) == set()
    assert [word for word in listed if not is_taken(word, f'"{word}"')] == []
