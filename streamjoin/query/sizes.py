"""How large expressions are, with what they share counted as often as it stands in them."""

from __future__ import annotations

from streamjoin.plan.expression import Call, Expression


class Sizes:
    """The sizes of the expressions of one query.

    Calls may share arguments, so that one of few calls can be too large to walk. Each size is kept, and asking for it
    again walks nothing.
    """

    def __init__(self) -> None:
        # By identity, as the hash of a call is that of all in it. A call is kept with its size, so that no other one
        # gets its id.
        self._known: dict[int, tuple[Call, int]] = {}

    def of(self, expression: Expression) -> int:
        """One for the expression itself, and the sizes of its arguments."""
        if not isinstance(expression, Call):
            return 1
        if (known := self._known.get(id(expression))) is None:
            known = self._known[id(expression)] = expression, 1 + sum(map(self.of, expression.args))
        return known[1]
