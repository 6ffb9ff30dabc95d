"""A kind of result store, as the registry has one: what it is called, where one is, and what opens it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from streamjoin.results.stores.spec import StoreSpec
from streamjoin.settings.setting import Settings

Resolve = Callable[[str], Path]
"""A path of a join file, absolute."""


@dataclass(frozen=True, slots=True)
class StoreKind:
    """A result store as the join file knows it.

    Args:
        says: what it is, for people.
        settings: where one is, and how it is reached.
        arguments: an instance of `settings` -> the arguments of what opens one; those that are None are left out.
        hosts: of an instance of `settings`, what it reaches over the network.
        files: of an instance of `settings`, the files that it writes, by field.
        buckets: parts that the rows of one batch are spread over, by join key, so that they lie on several nodes.
        opens: `module:attribute` of what opens one, see `StoreSpec`; a task imports it when it writes.
    """

    name: str
    says: str
    settings: type[Settings]
    arguments: Callable[[Any, Resolve], dict[str, Any]]
    hosts: Callable[[Any], tuple[str, ...]] = lambda settings: ()
    files: Callable[[Any], Mapping[str, str]] = lambda settings: {}
    buckets: int = 1
    opens: str = ""

    def spec(self, settings: Any, resolve: Resolve) -> StoreSpec:
        """How a task opens it."""
        given = self.arguments(settings, resolve)
        return StoreSpec(
            self.name, tuple((name, value) for name, value in given.items() if value is not None), self.opens
        )
