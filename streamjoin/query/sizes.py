"""Sizes of expressions, in which a shared part counts as often as it occurs."""

from __future__ import annotations

from streamjoin.plan.expression import Call, Expression


class Sizes:
    """The sizes of the expressions of one query.

    Calls may share arguments, so an expression of few calls can still be too large to walk. Each size is computed once.
    """

    def __init__(self) -> None:
        # By identity: hashing a call hashes everything in it. The call is kept too, so that its id is not used again.
        self._known: dict[int, tuple[Call, int]] = {}

    def of(self, expression: Expression) -> int:
        """One for the expression itself, plus the sizes of its arguments."""
        if not isinstance(expression, Call):
            return 1
        if (known := self._known.get(id(expression))) is None:
            known = self._known[id(expression)] = expression, 1 + sum(map(self.of, expression.args))
        return known[1]
