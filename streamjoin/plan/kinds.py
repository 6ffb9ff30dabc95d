"""Kinds of join: which rows a join gives besides its pairs, and whose rows it decides on. And trees of joins.

A row that is decided on is given once, final: as matched or as unmatched, when nothing inside the allowed delay can
match it any more.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from streamjoin.plan.asof import AsOf
from streamjoin.plan.expression import Expression
from streamjoin.plan.window import R, S


class JoinKind(StrEnum):
    """What a join is, in the words of the query."""

    INNER = "INNER"
    LEFT = "LEFT"
    RIGHT = "RIGHT"
    FULL = "FULL"
    SEMI = "LEFT SEMI"
    ANTI = "LEFT ANTI"

    @property
    def decided(self) -> tuple[int, ...]:
        """The sides of whose rows it says whether they were matched."""
        return _DECIDED[self]

    @property
    def preserved(self) -> tuple[int, ...]:
        """The sides whose unmatched rows it gives."""
        return () if self is JoinKind.SEMI else self.decided

    @property
    def gives_pairs(self) -> bool:
        """Whether pairs leave; else rows of R alone do."""
        return self not in (JoinKind.SEMI, JoinKind.ANTI)

    @property
    def nullable(self) -> tuple[int, ...]:
        """The sides whose columns are NULL where a row of the other side is unmatched."""
        return tuple(1 - side for side in self.preserved) if self.gives_pairs else ()


_DECIDED = {
    JoinKind.INNER: (),
    JoinKind.LEFT: (R,),
    JoinKind.RIGHT: (S,),
    JoinKind.FULL: (R, S),
    JoinKind.SEMI: (R,),
    JoinKind.ANTI: (R,),
}


@dataclass(frozen=True, slots=True)
class Join:
    """Two trees that are joined.

    Args:
        on: the conjuncts that decide who matches; for an inner join those of WHERE do as well.
        asof: each row of the left tree gets one row of the right one at most, which is a stream; `asof.at` has the
            names of the query.
    """

    left: Tree
    right: Tree
    kind: JoinKind = JoinKind.INNER
    on: tuple[Expression, ...] = ()
    asof: AsOf | None = None

    @property
    def words(self) -> str:
        """What stands between the two in FROM."""
        if self.asof is not None:
            return str(self.asof)
        return "JOIN" if self.kind is JoinKind.INNER else f"{self.kind} JOIN"


Tree = int | Join
"""What is joined with what: a stream, by its number among the query's, or a join."""


def streams_in(tree: Tree) -> frozenset[int]:
    """The streams of a tree, by number."""
    return frozenset([tree]) if isinstance(tree, int) else streams_in(tree.left) | streams_in(tree.right)


def looked_into(tree: Tree) -> frozenset[int]:
    """The streams of which no column comes out, as a semi or anti join only looks into them."""
    if isinstance(tree, int):
        return frozenset()
    below = looked_into(tree.left) | looked_into(tree.right)
    return below if tree.kind.gives_pairs else below | streams_in(tree.right)
