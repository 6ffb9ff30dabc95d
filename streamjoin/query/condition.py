"""A condition over result columns, outside of any query: `price > 100 AND name LIKE 'a%'`."""

from __future__ import annotations

from dataclasses import replace

import pyarrow as pa

from streamjoin.errors import InputError, QueryError
from streamjoin.plan.expression import Expression
from streamjoin.plan.schema import StreamSchema
from streamjoin.query.limits import check_text, check_tokens, room_to_recurse
from streamjoin.query.parse import syntax_tree
from streamjoin.query.refused import check_words
from streamjoin.query.scope import Scope
from streamjoin.query.tokens import read_words
from streamjoin.query.translate import RULES
from streamjoin.query.translator import Translator

_BEFORE = "SELECT 1 FROM results WHERE "
_READS = frozenset({"kind", "expressions", "from_", "where"})


def bind_condition(text: str, columns: pa.Schema, relation: str) -> Expression:
    """Give the names of a condition their meaning.

    Args:
        columns: what it may read; engine columns are left out.
        relation: the stream that the expression's columns are said to be of.
    Raises:
        InputError: it cannot be read or bound; the message says where.
    """
    visible = pa.schema([field for field in columns if not field.name.startswith("__")])
    return condition_over(text, (relation,), (StreamSchema(relation, visible, "arrival"),))


def condition_over(text: str, names: tuple[str, ...], streams: tuple[StreamSchema, ...]) -> Expression:
    """Give the names of a condition over streams their meaning.

    Args:
        names: what the condition calls the streams.
    Raises:
        InputError: it cannot be read or bound; the message says where.
    """
    if not text.strip():
        raise InputError("a condition is missing, such as price > 100")
    try:
        check_text(text)
        words = read_words(_BEFORE + text)
        check_tokens(words.source, words.tokens)
        check_words(words)
        tree = syntax_tree(words)
        if any(part and key not in _READS for key, part in tree.args.items()):
            raise words.source.wrong("this is more than a condition", words.range(len(words.tokens) - 1))
        scope = Scope(words.source, names, streams)
        with room_to_recurse():
            return Translator(RULES, words, scope, {}).condition(tree.args["where"].this)
    except QueryError as wrong:
        if wrong.span is None:
            raise InputError(wrong.message) from None
        shift = len(_BEFORE) if wrong.span.line == 1 else 0
        place = replace(wrong.span, column=max(wrong.span.column - shift, 1))
        raise InputError(f"{wrong.message} (line {place.line}, column {place.column} of the condition)") from None
