"""In which order a job joins three streams and more, where its join file leaves that to `auto`.

It is chosen once, before the first batch, and kept with the checkpoint: later starts have other samples, and state is
of one tree.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from streamjoin.operators.registry import AUTO
from streamjoin.plan.in_rounds import tree_plan
from streamjoin.plan.kinds import Join, Tree
from streamjoin.plan.reordering import is_free, reordered
from streamjoin.plan.stages import Plan
from streamjoin.settings.trees import NamedTree
from streamjoin.spec.joinfile import JoinFile


@dataclass(frozen=True, slots=True)
class Order:
    """An order of joins.

    Args:
        operator: its name.
        tree: what is joined with what; None of a ring.
        orders: of a ring, see `plan.in_rounds.in_rounds`.
        reason: why, for people.
        costs: by what it was predicted, as `operators.costs.several` writes it down; None where nothing was known.
    """

    operator: str
    tree: NamedTree | None
    reason: str
    orders: Mapping[str, Sequence[str]] = field(default_factory=dict)
    costs: Mapping[str, Any] | None = None

    def to_json(self) -> dict[str, Any]:
        """A plain mapping; `from_json` reads it back."""
        return {
            "operator": self.operator,
            "tree": self.tree,
            "orders": {name: list(order) for name, order in self.orders.items()},
            "reason": self.reason,
            "costs": self.costs,
        }

    def words(self) -> dict[str, Any]:
        """What there is to say of it, without what it was predicted by."""
        found = self.to_json()
        return {name: found[name] for name in ("operator", "tree", "orders", "reason")}

    @staticmethod
    def from_json(found: Mapping[str, Any]) -> Order:
        """The inverse of `to_json`."""
        tree = None if found["tree"] is None else _nested(found["tree"])
        return Order(found["operator"], tree, found["reason"], found["orders"], found["costs"])

    def in_file(self, file: JoinFile) -> JoinFile:
        """The join file as it would be written to have this operator, and these orders of a ring."""
        knobs = {"orders": dict(self.orders)} if self.orders else {}
        operator = file.operator.model_copy(update={"name": self.operator, **knobs})
        return file.model_copy(update={"operator": operator})

    def in_plan(self, plan: Plan) -> Plan:
        """The plan as a tree in this order; a ring is made of any tree."""
        if self.tree is None or plan.tree is None:
            return plan
        return reordered(plan, numbered(self.tree, plan.names))


def is_left_open(file: JoinFile) -> bool:
    """Whether a join file says nothing of the order of joins."""
    return file.queries is None and file.operator.name == AUTO and file.operator.tree is None


def fits(plan: Plan) -> bool:
    """Whether the streams of a plan can be joined in any order."""
    plan = tree_plan(plan)
    return len(plan.streams) > 2 and not plan.relations and plan.tree is not None and is_free(plan.tree)


def _nested(found: Any) -> NamedTree:
    if isinstance(found, str):
        return found
    left, right = map(_nested, found)
    return left, right


def numbered(tree: NamedTree, names: Sequence[str]) -> Tree:
    """A tree by the numbers of its streams."""
    if isinstance(tree, str):
        return names.index(tree)
    return Join(numbered(tree[0], names), numbered(tree[1], names))
