"""Syntax tree to expression: names become columns, every node gets a type.

`RULES` is the allow-list. A node that is not in it, or that carries a part its rule does not read, is refused; so a
parser that learns new syntax cannot widen the language.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pyarrow as pa
from sqlglot import exp

from streamjoin.errors import QueryError
from streamjoin.plan.coercion import cast
from streamjoin.plan.expression import Call, Expression, Literal
from streamjoin.plan.functions import times
from streamjoin.plan.schema import type_name
from streamjoin.plan.types import BOOL, INT64, STRING, TIMESTAMP, is_number
from streamjoin.query import constants
from streamjoin.query.calls import call_by_name
from streamjoin.query.casts import can_cast, type_of
from streamjoin.query.limits import OPERAND_DEPTH_MAX
from streamjoin.query.translator import Rule, Translator, is_text_expression, refuse

_EXTRACTED = (*times.FIELDS, "epoch")


def _chain(node: exp.Binary) -> list[exp.Expr]:
    """The operands of a AND b AND c, left to right; the tree of a long chain is too deep to recurse into."""
    operands: list[exp.Expr] = []
    left: Any = node
    while type(left) is type(node):
        operands.append(left.args["expression"])
        left = left.args["this"]
    return [left, *reversed(operands)]


def _paren(translator: Translator, node: exp.Paren) -> Expression:
    return translator.expression(node.this)


def _column(translator: Translator, node: exp.Column) -> Expression:
    if not isinstance(node.this, exp.Identifier):
        return refuse(translator, node)
    parts = [part for name in ("catalog", "db", "table") if (part := node.args.get(name))]
    written = [*((part.name, translator.place(part)) for part in parts), (node.this.name, translator.place(node))]
    return translator.scope.column_at(written)


def _literal(translator: Translator, node: exp.Literal) -> Expression:
    if node.is_string:
        return Literal(node.this, STRING)
    return _constant(translator, node, lambda: constants.number(node.this))


def _constant(translator: Translator, node: exp.Expr, read: Callable[[], Literal]) -> Literal:
    try:
        return read()
    except QueryError as bad:
        raise translator.wrong(bad.message, node) from None


def _negate(translator: Translator, node: exp.Neg) -> Expression:
    if isinstance(node.this, exp.Literal) and not node.this.is_string:
        # As one constant: the smallest int64 has no positive counterpart.
        return _constant(translator, node, lambda: constants.number("-" + node.this.this))
    return translator.call("negate", (translator.expression(node.this),), node)


def _null(_: Translator, __: exp.Null) -> Expression:
    return Literal(None, pa.null())


def _boolean(_: Translator, node: exp.Boolean) -> Expression:
    return Literal(bool(node.this), BOOL)


def _interval(translator: Translator, node: exp.Interval) -> Expression:
    unit = node.args.get("unit")
    if not isinstance(node.this, exp.Literal):
        raise translator.wrong("an interval is a constant, such as INTERVAL '5' SECOND", node)
    return _constant(translator, node, lambda: constants.interval(node.this.this, unit.name if unit else None))


def _logic(function: str) -> Callable[[Translator, Any], Expression]:
    def build(translator: Translator, node: exp.Binary) -> Expression:
        operands = [translator.condition(operand) for operand in _chain(node)]
        return translator.balanced(function, operands, node)

    return build


def _concat(translator: Translator, node: exp.Binary) -> Expression:
    return translator.balanced("concat", [translator.expression(operand) for operand in _chain(node)], node)


def _not(translator: Translator, node: exp.Not) -> Expression:
    return translator.call("not", (translator.condition(node.this),), node)


def _infix(function: str) -> Callable[[Translator, Any], Expression]:
    def build(translator: Translator, node: exp.Binary) -> Expression:
        operands = tuple(translator.expression(node.args[side]) for side in ("this", "expression"))
        return translator.call(function, operands, node)

    return build


def _comparison(function: str) -> Callable[[Translator, Any], Expression]:
    def build(translator: Translator, node: exp.Binary) -> Expression:
        left, right = (translator.expression(node.args[side]) for side in ("this", "expression"))
        return translator.compare(function, left, right, node)

    return build


def _between(translator: Translator, node: exp.Between) -> Expression:
    value, low, high = (translator.expression(node.args[part]) for part in ("this", "low", "high"))
    above = translator.compare("ge", value, low, node)
    return translator.call("and", (above, translator.compare("le", value, high, node)), node)


def _in(translator: Translator, node: exp.In) -> Expression:
    if not node.expressions:
        raise translator.wrong("IN needs a list of values, such as IN (1, 2)", node)
    value = translator.expression(node.this)
    options = [translator.compare("eq", value, translator.expression(option), node) for option in node.expressions]
    return translator.balanced("or", options, node)


def _is(translator: Translator, node: exp.Is) -> Expression:
    if isinstance(node.expression, exp.Boolean):
        return Call("same", (translator.condition(node.this), translator.expression(node.expression)), BOOL)
    if not isinstance(node.expression, exp.Null):
        raise translator.wrong("IS stands before [NOT] NULL, TRUE, FALSE, UNKNOWN or DISTINCT FROM only", node)
    return translator.call("is_null", (translator.expression(node.this),), node)


def _distinct(*, same: bool) -> Callable[[Translator, Any], Expression]:
    def build(translator: Translator, node: exp.Binary) -> Expression:
        left, right = (translator.expression(node.args[side]) for side in ("this", "expression"))
        found = translator.compare("same", left, right, node)
        return found if same else translator.call("not", (found,), node)

    return build


def _like(function: str) -> Callable[[Translator, Any], Expression]:
    def build(translator: Translator, node: exp.Binary) -> Expression:
        args = translator.expression(node.this), translator.expression(node.expression)
        found = translator.call(function, args, node)
        return translator.call("not", (found,), node) if node.args.get("negate") else found

    return build


def _extract(translator: Translator, node: exp.Extract) -> Expression:
    unit = node.this.name.lower()
    if unit not in _EXTRACTED:
        raise translator.wrong(f"EXTRACT knows no {unit.upper()[:40]}; it knows {', '.join(_EXTRACTED)}", node)
    return translator.call(unit, (translator.expression(node.expression),), node)


def _case(translator: Translator, node: exp.Case) -> Expression:
    subject = translator.expression(node.this) if node.this else None
    default = node.args.get("default")
    result: Expression = translator.expression(default) if default else Literal(None, pa.null())
    if len(node.args["ifs"]) > OPERAND_DEPTH_MAX // 2:
        raise translator.wrong(f"a CASE has {OPERAND_DEPTH_MAX // 2} branches at most", node)
    for branch in reversed(node.args["ifs"]):
        if subject is None:
            condition = translator.condition(branch.this)
        else:
            condition = translator.compare("eq", subject, translator.expression(branch.this), branch)
        result = translator.call("case", (condition, translator.expression(branch.args["true"]), result), branch)
    return result


def _cast(translator: Translator, node: exp.Cast) -> Expression:
    value = translator.expression(node.this)
    target = node.args["to"]
    try:
        kind = type_of(target)
        if not can_cast(value.type, kind):
            raise QueryError(f"CAST: {type_name(value.type)} cannot become {type_name(kind)}")
        if isinstance(value, Literal) and value.value is None:
            return Literal(None, kind)
        if (
            isinstance(value, Literal)
            and is_text_expression(value)
            and (pa.types.is_timestamp(kind) or pa.types.is_date(kind))
        ):
            return constants.instant(value.value, kind)
    except QueryError as bad:
        raise translator.wrong(bad.message, node) from None
    if is_number(value.type) and pa.types.is_timestamp(kind):
        value = cast(cast(value, INT64), TIMESTAMP)
    elif pa.types.is_timestamp(value.type) and is_number(kind):
        value = cast(value, TIMESTAMP)
    return cast(value, kind)


_BINARY = frozenset(("this", "expression"))

RULES: dict[type[exp.Expr], Rule] = {
    exp.Paren: (frozenset(("this",)), _paren),
    exp.Column: (frozenset(("this", "table", "db", "catalog")), _column),
    exp.Literal: (frozenset(("this", "is_string")), _literal),
    exp.Null: (frozenset(), _null),
    exp.Boolean: (frozenset(("this",)), _boolean),
    exp.Interval: (frozenset(("this", "unit")), _interval),
    exp.And: (_BINARY, _logic("and")),
    exp.Or: (_BINARY, _logic("or")),
    exp.Not: (frozenset(("this",)), _not),
    exp.EQ: (_BINARY, _comparison("eq")),
    exp.NEQ: (_BINARY, _comparison("ne")),
    exp.LT: (_BINARY, _comparison("lt")),
    exp.LTE: (_BINARY, _comparison("le")),
    exp.GT: (_BINARY, _comparison("gt")),
    exp.GTE: (_BINARY, _comparison("ge")),
    exp.Add: (_BINARY, _infix("add")),
    exp.Sub: (_BINARY, _infix("subtract")),
    exp.Mul: (_BINARY, _infix("multiply")),
    exp.Div: (_BINARY, _infix("divide")),
    exp.Mod: (_BINARY, _infix("modulo")),
    exp.Neg: (frozenset(("this",)), _negate),
    exp.DPipe: (_BINARY | {"safe"}, _concat),
    exp.Between: (frozenset(("this", "low", "high")), _between),
    exp.In: (frozenset(("this", "expressions")), _in),
    exp.Is: (_BINARY, _is),
    exp.NullSafeEQ: (_BINARY, _distinct(same=True)),
    exp.NullSafeNEQ: (_BINARY, _distinct(same=False)),
    exp.Like: (_BINARY | {"negate"}, _like("like")),
    exp.ILike: (_BINARY | {"negate"}, _like("ilike")),
    exp.Extract: (_BINARY, _extract),
    exp.Case: (frozenset(("this", "ifs", "default")), _case),
    exp.Cast: (frozenset(("this", "to")), _cast),
    exp.Anonymous: (frozenset(("this", "expressions")), call_by_name),
}
"""Syntax node -> (the parts its rule reads, the rule)."""
