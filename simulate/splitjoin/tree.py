"""Trees of a given fan-out over a row of leaves, used both ways: from the root to the leaves and back."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Tree:
    """A node, with its children from left to right; a leaf has none."""

    name: str
    children: tuple[Tree, ...] = ()

    def inner(self) -> Iterator[Tree]:
        """All nodes that are no leaves, the root first."""
        if self.children:
            yield self
            for child in self.children:
                yield from child.inner()

    def leaves(self) -> list[str]:
        """From left to right."""
        return [leaf for child in self.children for leaf in child.leaves()] if self.children else [self.name]

    def parents(self) -> dict[str, str]:
        """Who stands over whom."""
        return {child.name: node.name for node in self.inner() for child in node.children}

    def depth(self) -> int:
        """Edges from the root to any leaf."""
        return 1 + self.children[0].depth() if self.children else 0


def tree_over(leaves: Sequence[str], fan_out: int, name: str) -> Tree:
    """All leaves are equally deep, on as few levels as the fan-out allows; the last node of a level may be narrower.

    A node with few leaves has a wide root rather than many levels: the fan-out grows first, then the depth.
    """
    if not leaves or fan_out < 2:
        raise ValueError("a tree needs a leaf and a fan-out of 2 or more")
    level, height = [Tree(leaf) for leaf in leaves], 0
    while len(level) > 1:
        height += 1
        groups = [tuple(level[at : at + fan_out]) for at in range(0, len(level), fan_out)]
        level = [Tree(f"{name} {height}.{at}", group) for at, group in enumerate(groups)]
    return level[0]
