"""Weighted set cover, greedily (PSP, section 7): which hosts a hop needs, and what each of them answers for."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from typing import TypeVar

Item = TypeVar("Item", bound=Hashable)


def cover(items: Mapping[Item, Sequence[int]], load: Sequence[int]) -> dict[Item, int]:
    """One host for each item, of those that have it, so that few hosts with little to do are asked.

    The next host is the one with the least load for each item that no other answers for yet; of equals the first one.

    Args:
        items: the hosts of each, one at least.
        load: by host; what has none weighs as much as one tuple.
    Returns: an item is assigned to one host alone, so nothing is joined twice.
    Cost: hosts chosen x items x copies.
    """
    left = dict(items)
    assigned: dict[Item, int] = {}
    while left:
        having: dict[int, list[Item]] = {}
        for item, hosts in left.items():
            for host in hosts:
                having.setdefault(host, []).append(item)
        chosen = min(having, key=lambda host: (max(load[host], 1) / len(having[host]), host))
        for item in having[chosen]:
            assigned[item] = chosen
            del left[item]
    return assigned
