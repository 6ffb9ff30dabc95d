"""Results of a query that go to another store than before.

Rows of the last batches wait in a store for their snapshot. If a query's results go elsewhere from a start on, these
rows become the last snapshot where they went before, and a batch that was committed there is not committed again if it
is done again.

Where a job's folder was moved or copied, the stores beside it came along, and others are where they were; nothing is
done to what a copy was made of.
"""

from __future__ import annotations

import json
import logging
import os
import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from streamjoin.durable import put_durably
from streamjoin.errors import RunError
from streamjoin.results.description import DESCRIPTION, Description
from streamjoin.results.head import NOTHING, Elsewhere, Head
from streamjoin.results.ledger import Ledger
from streamjoin.results.parts import Sink
from streamjoin.results.patience import Patience
from streamjoin.results.policy import EpochPolicy
from streamjoin.results.sink import StoreSink
from streamjoin.results.stores.registry import STORES
from streamjoin.results.stores.spec import StoreSpec
from streamjoin.results.stores.store import StoreError, StoreMissingError
from streamjoin.spec.owners import is_copy, places_now, read_note

_log = logging.getLogger("streamjoin")
NOTED_FILE = "stores.json"
"""Says, in a checkpoint, in which stores the results of its queries are."""
_SECRET = re.compile("password|secret|token")


@dataclass(frozen=True, slots=True)
class _Kept:
    """Where a query's results are kept.

    Args:
        settings: of the store, without secrets.
        job: what they are called there.
        elsewhere: what went to other stores before.
    """

    kind: str
    settings: Mapping[str, Any]
    job: str
    elsewhere: Elsewhere = NOTHING

    @staticmethod
    def of(sink: StoreSink) -> _Kept:
        """Where a sink keeps them."""
        plain = {name: value for name, value in sink.spec.settings if not _SECRET.search(name)}
        return _Kept(sink.spec.kind, plain, sink.job)

    def now(self, before: str, checkpoint: Path) -> tuple[_Kept, ...]:
        """Where they may be now, most likely first, if the checkpoint was in the folder `before` then.

        Nowhere if the checkpoint is a copy, and they are its original's.
        """
        if "path" not in self.settings:
            return () if is_copy(checkpoint, before) else (self,)
        paths = places_now(self.settings["path"], before, checkpoint)
        return tuple(replace(self, settings={**self.settings, "path": path}) for path in paths)

    @property
    def is_there(self) -> bool:
        """Whether there is such a file, where the store is one."""
        return "path" not in self.settings or os.path.exists(self.settings["path"])

    def is_at(self, other: _Kept) -> bool:
        """Whether both are one place."""
        return (self.kind, dict(self.settings), self.job) == (other.kind, dict(other.settings), other.job)

    def spec(self, given: StoreSpec) -> StoreSpec:
        """How the store is opened, with the secrets of one of its kind that is opened now."""
        secrets = given.settings if given.kind == self.kind else ()
        settings = {name: value for name, value in secrets if _SECRET.search(name)} | dict(self.settings)
        return StoreSpec(self.kind, tuple(settings.items()), STORES[self.kind].opens)

    def __str__(self) -> str:
        where = self.settings.get("path") or self.settings.get("hosts") or self.settings.get("host")
        return f"{self.kind} {where} as {self.job}"

    def to_json(self) -> dict[str, Any]:
        """A plain mapping, which makes one again."""
        plain = {"kind": self.kind, "settings": dict(self.settings), "job": self.job}
        return {**plain, "elsewhere": self.elsewhere.to_json()}

    @staticmethod
    def from_json(value: Mapping[str, Any]) -> _Kept:
        """The inverse of `to_json`; earlier versions noted a batch alone."""
        elsewhere = Elsewhere.from_json(value.get("elsewhere", {"batch": value.get("since", -1)}))
        return _Kept(value["kind"], value["settings"], value["job"], elsewhere)


def settle_moved(checkpoint: Path, sinks: Mapping[str, Sink], origin: str) -> None:
    """Complete the results of queries in the stores that they went to before, where they go elsewhere now.

    Args:
        checkpoint: which is held.
        sinks: of each query, by its name; those into stores learn which batches are committed elsewhere.
        origin: the checkpoint's id.
    Raises:
        RunError: a store that they went to cannot be reached.
    """
    noted = _noted(checkpoint)
    now = {name: next((one for one in places if one.is_there), places[0]) for name, places in noted.items() if places}
    for name, sink in sinks.items():
        if not isinstance(sink, StoreSink):
            continue
        before, kept = noted.get(name, ()), _Kept.of(sink)
        if (same := next((one for one in before if one.is_at(kept)), None)) is not None:
            kept = same
        elif before and before[0].kind in STORES:
            heads = ((one, _completed(one, sink, origin, checkpoint)) for one in before)
            place, head = next((found for found in heads if found[1] is not None), (before[0], None))
            kept = replace(kept, elsewhere=place.elsewhere.after(head.batch, head.state) if head else place.elsewhere)
            if head is not None and sink.description.identity:
                _log.warning("%s", _groups_text(name, place, kept))
        now[name], sink.elsewhere = kept, kept.elsewhere
    told = {"checkpoint": os.path.abspath(checkpoint), "stores": {name: kept.to_json() for name, kept in now.items()}}
    if now and told != read_note(checkpoint / NOTED_FILE):
        put_durably(checkpoint / NOTED_FILE, json.dumps(told, indent=1).encode())


def _groups_text(query: str, before: _Kept, kept: _Kept) -> str:
    """What is not where the results of a query go from now on whose groups change."""
    return (
        f"results{f' of {query}' if query else ''} go to {kept} from now on: it is told of groups that change from now "
        f"on, and the last values of all others are in {before}"
    )


def _completed(before: _Kept, sink: StoreSink, origin: str, checkpoint: Path) -> Head | None:
    """Make a snapshot of what waits in a store; its head, None where the checkpoint has no results there."""
    patience = Patience(sink.retry_s)
    store = before.spec(sink.spec).open()
    try:
        stored = patience.steadily(lambda: store.head(before.job))
        if stored is None or Head.from_bytes(stored).origin != origin:
            return None
        (described,) = patience.steadily(lambda: list(store.get_records(before.job, DESCRIPTION, DESCRIPTION)))
        ledger = Ledger(store, before.job, Description.from_bytes(described[1]), EpochPolicy(), patience=patience)
        ledger.take_over(origin, sink.lease)
        ledger.finish(for_good=True)
    except StoreMissingError:
        return None
    except StoreError as away:
        raise RunError(
            f"results went to {before} until now, and some may wait there for their snapshot: {away}; make it "
            f"reachable for this start, or remove {checkpoint / NOTED_FILE} to go on without these"
        ) from None
    finally:
        store.close()
    return ledger.head


def _noted(checkpoint: Path) -> dict[str, tuple[_Kept, ...]]:
    """Where the results of each query may be that went to the stores that were noted."""
    found = read_note(checkpoint / NOTED_FILE)
    try:
        return {
            str(name): _Kept.from_json(kept).now(found["checkpoint"], checkpoint)
            for name, kept in found["stores"].items()
        }
    except (KeyError, TypeError, AttributeError):
        return {}
