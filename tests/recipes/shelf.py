"""A store for tests: results in this process's memory, by the name of a shelf. All that a store is, in one module."""

from __future__ import annotations

from typing import Annotated

from streamjoin.results.stores.kind import StoreKind
from streamjoin.results.stores.memory import MemoryStore
from streamjoin.settings.setting import Settings, setting


class ShelfSettings(Settings):
    """Which shelf."""

    shelf: Annotated[str, setting("the name of the shelf")]


def open_shelf(shelf: str) -> MemoryStore:
    """The store, in a task."""
    return MemoryStore.named(f"shelf {shelf}")


SHELF = StoreKind(
    "shelf",
    "a shelf in memory",
    ShelfSettings,
    lambda settings, resolve: {"shelf": settings.shelf},
    opens="tests.recipes.shelf:open_shelf",
)
