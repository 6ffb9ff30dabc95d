"""Which store a job's results are in, and how it is opened."""

from __future__ import annotations

from dataclasses import dataclass, field
from importlib import import_module
from typing import Any

from streamjoin.results.stores.store import Store, StoreError

_TIERS = {
    "memory": "streamjoin.results.stores.memory:MemoryStore.named",
    "redis": "streamjoin.results.stores.redis:RedisStore",
}
"""Of the platform's memory, no stores of a join file."""


@dataclass(frozen=True, slots=True)
class StoreSpec:
    """How to open a store, as plain data that travels to tasks.

    Args:
        kind: its name in the registry; or memory or redis.
        settings: the arguments of what opens it, by name.
        opens: `module:attribute` of what opens it; `open_store` of the module `store` of its folder unless given.
    """

    kind: str
    settings: tuple[tuple[str, Any], ...] = field(repr=False)  # a password may be among them
    opens: str = ""

    def open(self) -> Store:
        """The store; nothing is connected before it is used."""
        own = f"{__package__}.{self.kind}.store:open_store"
        module, _, attribute = (self.opens or _TIERS.get(self.kind, own)).partition(":")
        try:
            found: Any = import_module(module)
        except ModuleNotFoundError as missing:
            if missing.name is None or not module.startswith(missing.name):
                raise
            raise StoreError(f'there is no result store "{self.kind}"') from None
        for name in attribute.split("."):
            found = getattr(found, name)
        store: Store = found(**dict(self.settings))
        return store
