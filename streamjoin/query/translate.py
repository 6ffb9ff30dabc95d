"""Syntax tree to expression: names become columns, every node gets a type.

`_RULES` is the allow-list. A node that is not in it, or that carries a part its rule does not read, is refused; so a
parser that learns new syntax cannot widen the language.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeAlias

import pyarrow as pa
import pyarrow.compute as pc
from sqlglot import exp

from streamjoin.errors import QueryError
from streamjoin.plan.coercion import call, cast
from streamjoin.plan.expression import Call, Expression, Literal
from streamjoin.plan.functions import rounding, texts, times
from streamjoin.plan.functions.constants import PATTERN_ARGUMENTS
from streamjoin.plan.functions.table import PUBLIC_FUNCTIONS
from streamjoin.plan.schema import type_name
from streamjoin.plan.types import BOOL, INT64, STRING, TIMESTAMP, comparison_type, is_number
from streamjoin.query import constants
from streamjoin.query.casts import can_cast, type_of
from streamjoin.query.limits import OPERAND_DEPTH_MAX
from streamjoin.query.scope import Scope, look_up, suggest
from streamjoin.query.source import Range
from streamjoin.query.tokens import CALL_MARK, CALLABLE, SYNONYMS, Words


@dataclass(frozen=True, slots=True)
class RegisteredPredicate:
    """A vectorised predicate a query may call by name.

    Args:
        function: numpy arrays of one length, one per argument -> bool array of that length. Equal arguments must
            give equal answers: after a failure rows are computed again.
        arguments: the types of the arguments; numbers are cast to them.
    """

    function: Callable[..., Any]
    arguments: tuple[pa.DataType, ...]


AGGREGATES = frozenset(
    (
        *("sum", "count", "avg", "mean", "min", "max", "stddev", "variance", "median", "quantile", "mode"),
        *("first", "last", "any_value", "count_if", "array_agg", "string_agg", "listagg", "approx_count_distinct"),
    )
)
_CHECKS: dict[str, Callable[..., None]] = {"date_trunc": times.check_unit, "split_part": texts.check_part}
"""What the constants of a function must be, besides having the right types."""
_EXTRACTED = (*times.FIELDS, "epoch")
_SYMBOLS = {
    **{"eq": "=", "ne": "<>", "lt": "<", "le": "<=", "gt": ">", "ge": ">=", "and": "AND", "or": "OR", "not": "NOT"},
    "same": "IS [NOT] DISTINCT FROM",
    **{"add": "+", "subtract": "-", "multiply": "*", "divide": "/", "modulo": "%", "negate": "-", "concat": "||"},
    **{"like": "LIKE", "ilike": "ILIKE"},
}

Rule: TypeAlias = "tuple[frozenset[str], Callable[[Translator, Any], Expression]]"


class Translator:
    """Turns the syntax nodes of one query into expressions.

    Args:
        words: give nodes their places.
        scope: gives names their columns.
        predicates: registered predicates by name; `used` collects those the query calls.
    """

    def __init__(self, words: Words, scope: Scope, predicates: dict[str, RegisteredPredicate]) -> None:
        self.words = words
        self.scope = scope
        self.predicates = predicates
        self.used: dict[str, Callable[..., Any]] = {}
        self._depth = 0

    def condition(self, node: exp.Expr) -> Expression:
        """A boolean expression; NULL is one.

        Raises:
            QueryError: the node is outside the language, or is not boolean.
        """
        found = self.expression(node)
        if pa.types.is_null(found.type):
            return Literal(None, BOOL)
        if found.type != BOOL:
            raise self._wrong(f"a condition is true or false; this is {type_name(found.type)}", node)
        return found

    def expression(self, node: exp.Expr) -> Expression:
        """Any expression.

        Raises:
            QueryError: the node is outside the language, a name means nothing, or types do not fit.
        """
        # Brackets have their own limit, and leave no trace in the expression.
        nests = type(node) not in (exp.Paren, exp.Column, exp.Literal)
        self._depth += nests
        try:
            if self._depth > OPERAND_DEPTH_MAX:
                raise self._wrong(
                    f"more than {OPERAND_DEPTH_MAX} operators inside each other; take the expression apart", node
                )
            reads, build = _RULES.get(type(node), (frozenset[str](), _refuse))
            if any(part and key not in reads for key, part in node.args.items()):
                return _refuse(self, node)
            return build(self, node)
        finally:
            self._depth -= nests

    def call(self, function: str, args: Sequence[Expression], node: exp.Expr) -> Call:
        """A type-checked call; its errors have the place of `node`."""
        for place in PATTERN_ARGUMENTS.get(function, ()):
            if place < len(args) and not isinstance(args[place], Literal):
                raise self._wrong(f"argument {place + 1} of {function.upper()} must be a constant", node)
        try:
            found = call(function, *args)
            if check := _CHECKS.get(function):
                check(*[args[place].value for place in PATTERN_ARGUMENTS[function]])  # type: ignore[union-attr]
            return found
        except QueryError as bad:
            if function not in _SYMBOLS:
                raise self._wrong(bad.message, node) from None
            raise self._wrong(f"{_SYMBOLS[function]}: {bad.message.partition(': ')[2]}", node) from None

    def compare(self, function: str, left: Expression, right: Expression, node: exp.Expr) -> Call:
        """A comparison; a string constant beside a timestamp or date is read as one."""
        left, right = self._constant_like(left, right, node), self._constant_like(right, left, node)
        if comparison_type(left.type, right.type) is None and (_is_text(left) or _is_text(right)):
            raise self._wrong(
                f"{_SYMBOLS[function]}: cannot compare {type_name(left.type)} with {type_name(right.type)}; "
                "write CAST(... AS ...) on one side",
                node,
            )
        if function == "same":  # of what = compares
            return replace(self.call("eq", (left, right), node), function=function)
        return self.call(function, (left, right), node)

    def balanced(self, function: str, args: Sequence[Expression], node: exp.Expr) -> Expression:
        """One associative function over many arguments, as a tree of logarithmic depth in their order."""
        if len(args) == 1:
            return args[0]
        middle = (len(args) + 1) // 2
        halves = (self.balanced(function, part, node) for part in (args[:middle], args[middle:]))
        return self.call(function, tuple(halves), node)

    def _constant_like(self, constant: Expression, other: Expression, node: exp.Expr) -> Expression:
        if not (isinstance(constant, Literal) and _is_text(constant) and constant.value is not None):
            return constant
        if not (pa.types.is_timestamp(other.type) or pa.types.is_date(other.type)):
            return constant
        try:
            # A date column may be compared with a moment inside a day.
            day = pa.types.is_date(other.type) and len(constant.value) <= len("2024-05-01")
            return constants.instant(constant.value, other.type if day else pa.timestamp("us", tz="UTC"))
        except QueryError as bad:
            raise self._wrong(bad.message, node) from None

    def _wrong(self, message: str, node: exp.Expr) -> QueryError:
        return self.words.source.wrong(message, self.words.range_of(node))

    def place(self, node: exp.Expr) -> Range:
        """Where a node stands in the text."""
        return self.words.range_of(node)


def _is_text(expression: Expression) -> bool:
    return bool(pa.types.is_string(expression.type) or pa.types.is_large_string(expression.type))


def _chain(node: exp.Binary) -> list[exp.Expr]:
    """The operands of a AND b AND c, left to right; the tree of a long chain is too deep to recurse into."""
    operands: list[exp.Expr] = []
    left: Any = node
    while type(left) is type(node):
        operands.append(left.args["expression"])
        left = left.args["this"]
    return [left, *reversed(operands)]


# --- rules ------------------------------------------------------------------------------------------------------------


def _refuse(translator: Translator, node: exp.Expr) -> Expression:
    where = translator.place(node)
    raise translator.words.source.wrong(
        f'"{translator.words.source.snippet(where)}" ({type(node).__name__}) is not part of the query language', where
    )


def _paren(translator: Translator, node: exp.Paren) -> Expression:
    return translator.expression(node.this)


def _column(translator: Translator, node: exp.Column) -> Expression:
    if not isinstance(node.this, exp.Identifier):
        return _refuse(translator, node)
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
        raise translator._wrong(bad.message, node) from None


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
        raise translator._wrong("an interval is a constant, such as INTERVAL '5' SECOND", node)
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
        raise translator._wrong("IN needs a list of values, such as IN (1, 2)", node)
    value = translator.expression(node.this)
    options = [translator.compare("eq", value, translator.expression(option), node) for option in node.expressions]
    return translator.balanced("or", options, node)


def _is(translator: Translator, node: exp.Is) -> Expression:
    if isinstance(node.expression, exp.Boolean):
        return Call("same", (translator.condition(node.this), translator.expression(node.expression)), BOOL)
    if not isinstance(node.expression, exp.Null):
        raise translator._wrong("IS stands before [NOT] NULL, TRUE, FALSE, UNKNOWN or DISTINCT FROM only", node)
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
        raise translator._wrong(f"EXTRACT knows no {unit.upper()[:40]}; it knows {', '.join(_EXTRACTED)}", node)
    return translator.call(unit, (translator.expression(node.expression),), node)


def _case(translator: Translator, node: exp.Case) -> Expression:
    subject = translator.expression(node.this) if node.this else None
    default = node.args.get("default")
    result: Expression = translator.expression(default) if default else Literal(None, pa.null())
    if len(node.args["ifs"]) > OPERAND_DEPTH_MAX // 2:
        raise translator._wrong(f"a CASE has {OPERAND_DEPTH_MAX // 2} branches at most", node)
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
        if isinstance(value, Literal) and _is_text(value) and (pa.types.is_timestamp(kind) or pa.types.is_date(kind)):
            return constants.instant(value.value, kind)
    except QueryError as bad:
        raise translator._wrong(bad.message, node) from None
    if is_number(value.type) and pa.types.is_timestamp(kind):
        value = cast(cast(value, INT64), TIMESTAMP)
    elif pa.types.is_timestamp(value.type) and is_number(kind):
        value = cast(value, TIMESTAMP)
    return cast(value, kind)


def _function(translator: Translator, node: exp.Anonymous) -> Expression:
    marked = node.this
    if not isinstance(marked, str) or not marked.startswith(CALL_MARK):
        return _refuse(translator, node)
    name = marked.removeprefix(CALL_MARK)
    if registered := look_up(name, {own: (own, predicate) for own, predicate in translator.predicates.items()}):
        return _registered(translator, *registered, node)
    function = SYNONYMS.get(name.lower(), name.lower())
    if function in CALLABLE:
        args = [translator.expression(arg) for arg in _checked(node, function, translator)]
        found = translator.call(function, args, node)
        if function == "round" and len(args) == 2 and pa.types.is_decimal(found.type):
            digits = args[1].value  # type: ignore[union-attr]
            return found if digits is None else replace(found, type=rounding.rounded_type(found.type, digits))
        return found
    if name.lower() in AGGREGATES:
        hint = {"min": "; of two values, write LEAST", "max": "; of two values, write GREATEST"}.get(name.lower(), "")
        raise translator.words.source.unsupported(
            f"{name.upper()}: aggregation is not supported yet; select the joined columns and aggregate the result "
            f"stream{hint}",
            translator.place(node),
        )
    known = {own: own.upper() for own in PUBLIC_FUNCTIONS} | {own: own for own in translator.predicates}
    raise translator._wrong(f"there is no function {name}; {suggest(name, known)}", node)


def _checked(node: exp.Anonymous, function: str, translator: Translator) -> list[exp.Expr]:
    """The arguments of a function; the pattern of REGEXP_LIKE must be one."""
    args: list[exp.Expr] = node.expressions
    if function == "regexp_like" and len(args) == 2 and isinstance(args[1], exp.Literal) and args[1].is_string:
        try:
            pc.match_substring_regex(pa.array([""]), args[1].this)
        except pa.ArrowInvalid as bad:
            raise translator._wrong(f"REGEXP_LIKE: {bad}", args[1]) from None
    return args


def _registered(translator: Translator, name: str, predicate: RegisteredPredicate, node: exp.Anonymous) -> Expression:
    if len(node.expressions) != len(predicate.arguments):
        many = len(predicate.arguments)
        raise translator._wrong(
            f"{name} takes {many} argument{'' if many == 1 else 's'}, not {len(node.expressions)}", node
        )
    args = []
    for place, (kind, part) in enumerate(zip(predicate.arguments, node.expressions, strict=True), 1):
        value = translator.expression(part)
        if not _fits(value.type, kind):
            raise translator._wrong(
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


_BINARY = frozenset(("this", "expression"))

_RULES: dict[type[exp.Expr], Rule] = {
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
    exp.Anonymous: (frozenset(("this", "expressions")), _function),
}
"""Syntax node -> (the parts its rule reads, the rule)."""
