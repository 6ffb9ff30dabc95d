"""Calls of functions by name: built-in ones, predicates, and those that are refused with a reason."""

from __future__ import annotations

from dataclasses import replace

import pyarrow as pa
import pyarrow.compute as pc
from sqlglot import exp

from streamjoin.plan.coercion import cast
from streamjoin.plan.expression import Call, Expression
from streamjoin.plan.functions import rounding
from streamjoin.plan.functions.table import PUBLIC_FUNCTIONS
from streamjoin.plan.schema import type_name
from streamjoin.plan.types import BOOL, is_number
from streamjoin.query.aggregates import AGGREGATES as KNOWN
from streamjoin.query.predicates import RegisteredPredicate
from streamjoin.query.relations import VERSION_CALL, version_of
from streamjoin.query.scope import look_up, suggest
from streamjoin.query.tokens import CALL_MARK, CALLABLE, SYNONYMS
from streamjoin.query.translator import Translator, refuse

OF_GROUPS = frozenset(
    (
        *(*KNOWN, "window_start", "window_end", "median", "quantile", "mode", "approx_quantile"),
        *("first", "last", "any_value", "count_if", "array_agg", "string_agg", "listagg", "approx_count_distinct"),
    )
)
"""What people may write as an aggregate function, there or not."""


def call_by_name(translator: Translator, node: exp.Anonymous) -> Expression:
    """A call of a function by its name."""
    marked = node.this
    if not isinstance(marked, str) or not marked.startswith(CALL_MARK):
        return refuse(translator, node)
    name = marked.removeprefix(CALL_MARK)
    if registered := look_up(name, {own: (own, predicate) for own, predicate in translator.predicates.items()}):
        return _registered(translator, *registered, node)
    if name.lower() == VERSION_CALL:
        return version_of(translator, node)
    function = SYNONYMS.get(name.lower(), name.lower())
    if function in CALLABLE:
        args = [translator.expression(arg) for arg in _checked(node, function, translator)]
        found = translator.call(function, args, node)
        if function == "round" and len(args) == 2 and pa.types.is_decimal(found.type):
            digits = args[1].value  # type: ignore[union-attr]
            return found if digits is None else replace(found, type=rounding.rounded_type(found.type, digits))
        return found
    if name.lower() in OF_GROUPS:
        hint = {"min": "; of two values, write LEAST", "max": "; of two values, write GREATEST"}.get(name.lower(), "")
        if name.lower() not in (*KNOWN, "window_start", "window_end"):
            raise translator.words.source.unsupported(
                f"{name.upper()} is not supported yet; aggregate functions are {', '.join(map(str.upper, KNOWN))}",
                translator.place(node),
            )
        raise translator.wrong(
            f"{name.upper()} is computed of groups, in the SELECT list and HAVING of a query with GROUP BY; write "
            "GROUP BY R.k for groups that are given again as they change, or GROUP BY R.k, TUMBLE(1 MINUTE) for each "
            f"minute once{hint}",
            node,
        )
    known = {own: own.upper() for own in (*PUBLIC_FUNCTIONS, VERSION_CALL)}
    known |= {own: own for own in translator.predicates}
    raise translator.wrong(f"there is no function {name}; {suggest(name, known)}", node)


def _checked(node: exp.Anonymous, function: str, translator: Translator) -> list[exp.Expr]:
    """The arguments of a function; the pattern of REGEXP_LIKE must be one."""
    args: list[exp.Expr] = node.expressions
    if function == "regexp_like" and len(args) == 2 and isinstance(args[1], exp.Literal) and args[1].is_string:
        try:
            pc.match_substring_regex(pa.array([""]), args[1].this)
        except pa.ArrowInvalid as bad:
            raise translator.wrong(f"REGEXP_LIKE: {bad}", args[1]) from None
    return args


def _registered(translator: Translator, name: str, predicate: RegisteredPredicate, node: exp.Anonymous) -> Expression:
    if len(node.expressions) != len(predicate.arguments):
        many = len(predicate.arguments)
        raise translator.wrong(
            f"{name} takes {many} argument{'' if many == 1 else 's'}, not {len(node.expressions)}", node
        )
    args = []
    for place, (kind, part) in enumerate(zip(predicate.arguments, node.expressions, strict=True), 1):
        value = translator.expression(part)
        if not _fits(value.type, kind):
            raise translator.wrong(
                f"argument {place} of {name} is {type_name(kind)}, not {type_name(value.type)}", part
            )
        args.append(cast(value, kind))
    translator.used[name] = predicate.function
    return Call(name, tuple(args), BOOL)


def _fits(source: pa.DataType, target: pa.DataType) -> bool:
    """Whether a predicate that takes `target` takes `source`; a fraction is never cut off unasked."""
    if source == target or pa.types.is_null(source):
        return True
    if is_number(source) and is_number(target):
        return bool(pa.types.is_integer(source) or not pa.types.is_integer(target))
    return False
