"""What turns syntax nodes into expressions: their places, their types, and what two operands mean together.

Which nodes there may be, and what each means, is the table that a translator is given; see `translate`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any, TypeAlias

import pyarrow as pa
from sqlglot import exp

from streamjoin.errors import QueryError
from streamjoin.plan.coercion import call
from streamjoin.plan.expression import Call, Column, Expression, Literal
from streamjoin.plan.functions import texts, times
from streamjoin.plan.functions.constants import PATTERN_ARGUMENTS
from streamjoin.plan.schema import type_name
from streamjoin.plan.types import BOOL, comparison_type
from streamjoin.query import constants
from streamjoin.query.limits import OPERAND_DEPTH_MAX, REPEATED_MAX
from streamjoin.query.predicates import RegisteredPredicate
from streamjoin.query.scope import Scope
from streamjoin.query.sizes import Sizes
from streamjoin.query.source import Range
from streamjoin.query.tokens import Words

_CHECKS: dict[str, Callable[..., None]] = {"date_trunc": times.check_unit, "split_part": texts.check_part}
"""What the constants of a function must be, besides having the right types."""

_SYMBOLS = {
    **{"eq": "=", "ne": "<>", "lt": "<", "le": "<=", "gt": ">", "ge": ">=", "and": "AND", "or": "OR", "not": "NOT"},
    "same": "IS [NOT] DISTINCT FROM",
    **{"add": "+", "subtract": "-", "multiply": "*", "divide": "/", "modulo": "%", "negate": "-", "concat": "||"},
    **{"like": "LIKE", "ilike": "ILIKE"},
}
Rule: TypeAlias = "tuple[frozenset[str], Callable[[Translator, Any], Expression]]"
Rules: TypeAlias = "Mapping[type[exp.Expr], Rule]"
"""Syntax node -> (the parts its rule reads, the rule). Other nodes, and other parts, are refused."""


class Translator:
    """Turns the syntax nodes of one query into expressions.

    Args:
        rules: the allow-list.
        words: give nodes their places.
        scope: gives names their columns.
        predicates: registered predicates by name; `used` collects those the query calls.
    """

    def __init__(self, rules: Rules, words: Words, scope: Scope, predicates: dict[str, RegisteredPredicate]) -> None:
        self.rules = rules
        self.words = words
        self.scope = scope
        self.predicates = predicates
        self.used: dict[str, Callable[..., Any]] = {}
        self._depth = 0
        self._sizes = Sizes()
        self._size = 0

    def condition(self, node: exp.Expr) -> Expression:
        """A boolean expression; NULL is one.

        Raises:
            QueryError: the node is outside the language, or is not boolean.
        """
        found = self.expression(node)
        if pa.types.is_null(found.type):
            return Literal(None, BOOL)
        if found.type != BOOL:
            raise self.wrong(f"a condition is true or false; this is {type_name(found.type)}", node)
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
                raise self.wrong(
                    f"more than {OPERAND_DEPTH_MAX} operators inside each other; take the expression apart", node
                )
            reads, build = self.rules.get(type(node), (frozenset[str](), refuse))
            if any(part and key not in reads for key, part in node.args.items()):
                return refuse(self, node)
            found = build(self, node)
            if nests and self._depth == 1:
                self._size += self._sizes.of(found)
                self._check_size(self._size, node)
            return found
        finally:
            self._depth -= nests

    def call(self, function: str, args: Sequence[Expression], node: exp.Expr) -> Call:
        """A type-checked call; its errors have the place of `node`."""
        for place in PATTERN_ARGUMENTS.get(function, ()):
            if place < len(args) and not isinstance(args[place], Literal):
                raise self.wrong(f"argument {place + 1} of {function.upper()} must be a constant", node)
        try:
            found = call(function, *args)
            if check := _CHECKS.get(function):
                check(*[args[place].value for place in PATTERN_ARGUMENTS[function]])  # type: ignore[union-attr]
        except QueryError as bad:
            if function not in _SYMBOLS:
                raise self.wrong(bad.message, node) from None
            raise self.wrong(f"{_SYMBOLS[function]}: {bad.message.partition(': ')[2]}", node) from None
        self._check_size(self._sizes.of(found), node)
        return found

    def compare(self, function: str, left: Expression, right: Expression, node: exp.Expr) -> Call:
        """A comparison; a string constant beside a timestamp or date is read as one."""
        left, right = self._constant_like(left, right, node), self._constant_like(right, left, node)
        if comparison_type(left.type, right.type) is None and (is_text_expression(left) or is_text_expression(right)):
            raise self.wrong(
                f"{_SYMBOLS[function]}: cannot compare {type_name(left.type)} with {type_name(right.type)}"
                f"{_of_columns(left, right)}; write CAST(... AS ...) on one side",
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
        if not (isinstance(constant, Literal) and is_text_expression(constant) and constant.value is not None):
            return constant
        if not (pa.types.is_timestamp(other.type) or pa.types.is_date(other.type)):
            return constant
        try:
            # A date column may be compared with a moment inside a day.
            day = pa.types.is_date(other.type) and len(constant.value) <= len("2024-05-01")
            return constants.instant(constant.value, other.type if day else pa.timestamp("us", tz="UTC"))
        except QueryError as bad:
            raise self.wrong(bad.message, node) from None

    def _check_size(self, size: int, node: exp.Expr) -> None:
        if size > REPEATED_MAX:
            raise self.wrong(
                f"the query is too large: IN, BETWEEN and CASE repeat what stands before them, and with that it has "
                f"more than {REPEATED_MAX} parts; nest fewer of them inside each other",
                node,
            )

    def wrong(self, message: str, node: exp.Expr) -> QueryError:
        """An error at the place of `node`."""
        return self.words.source.wrong(message, self.words.range_of(node))

    def place(self, node: exp.Expr) -> Range:
        """Where a node stands in the text."""
        return self.words.range_of(node)


def is_text_expression(expression: Expression) -> bool:
    """Whether an expression gives text."""
    return bool(pa.types.is_string(expression.type) or pa.types.is_large_string(expression.type))


def refuse(translator: Translator, node: exp.Expr) -> Expression:
    """Of a node that is not in the language."""
    where = translator.place(node)
    raise translator.words.source.wrong(
        f'"{translator.words.source.snippet(where)}" ({type(node).__name__}) is not part of the query language', where
    )


def _of_columns(left: Expression, right: Expression) -> str:
    """Which columns two types are of, where both are columns as they stand."""
    return f" ({left} with {right})" if isinstance(left, Column) and isinstance(right, Column) else ""
