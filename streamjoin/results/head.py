"""A job's head: which generation writes, what was committed last, and whose each batch and snapshot is."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import astuple, dataclass, field, replace
from typing import Any

from streamjoin.errors import StateError
from streamjoin.flow.periods import Ends
from streamjoin.results.description import FORMAT
from streamjoin.results.policy import Open
from streamjoin.results.snapshot import FIRST, BaseId, Snapshot, SnapshotId
from streamjoin.results.stores.store import BlockKey


@dataclass(frozen=True, slots=True)
class Head:
    """A job's head.

    Args:
        origin: id of the checkpoint whose batches these are.
        generation: who writes now.
        batch: the last committed batch; -1 before the first.
        state: the policy's.
        batch_owners: (generation, its first batch), rising.
        id_owners: (generation, the newest snapshot before its first), rising.
        waiting_since: the first batch that has blocks in no snapshot; None when nothing waits.
        floor: snapshots up to this one have been removed.
        below_time_max_us: the latest result time among the snapshots up to `floor`; kept in memory stores, and where
            they have a base.
        base: the generation that wrote the base of the snapshots up to `floor`; 0 where there is none.
        newest_base: of groups that change, the base that the newest snapshots name; None before the first.
        tail: what reading the snapshots after it costs, in rows.
        split_since: the first batch whose results may be in parts of blocks that wait; None where none do.
        replaced: blocks that the last batch split, which nobody needs any more.
        rows, snapshots: in all committed snapshots, removed ones included.
        marks_us, clock_us: of the last batch.
        shed: tuples shed since the last batch that closed a snapshot.
        lease: of the platform's leases of the job the highest whose driver has taken over; 0 without a platform.
        writer: nobody else's: of two drivers that take over at once only one finds its own head in the store.
    """

    origin: str = ""
    generation: int = 0
    batch: int = -1
    state: Open = field(default_factory=Open)
    batch_owners: tuple[tuple[int, int], ...] = ()
    id_owners: tuple[tuple[int, SnapshotId], ...] = ()
    waiting_since: int | None = None
    floor: SnapshotId = FIRST
    rows: int = 0
    snapshots: int = 0
    marks_us: tuple[int | None, ...] = (None, None)
    clock_us: int = 0
    below_time_max_us: int | None = None
    writer: str = ""
    shed: int = 0
    lease: int = 0
    base: int = 0
    split_since: int | None = None
    replaced: tuple[BlockKey, ...] = ()
    newest_base: BaseId | None = None
    tail: int = 0

    def to_bytes(self) -> bytes:
        """The stored text; `from_bytes` reads it back."""
        return json.dumps(
            {
                "format": FORMAT, "origin": self.origin, "generation": self.generation, "batch": self.batch,
                "state": self.state.to_json(),
                "batch_owners": [list(owner) for owner in self.batch_owners],
                "id_owners": [[generation, id.epoch, id.part] for generation, id in self.id_owners],
                "waiting_since": self.waiting_since, "floor": [self.floor.epoch, self.floor.part], "rows": self.rows,
                "snapshots": self.snapshots, "marks_us": list(self.marks_us), "clock_us": self.clock_us,
                "below_time_max_us": self.below_time_max_us, "writer": self.writer, "shed": self.shed,
                "lease": self.lease, "base": self.base, "tail": self.tail,
                **({"newest_base": self.newest_base.to_json()} if self.newest_base is not None else {}),
                **({"split_since": self.split_since} if self.split_since is not None else {}),
                **({"replaced": [astuple(key) for key in self.replaced]} if self.replaced else {}),
            },
            separators=(",", ":"),
        ).encode()  # fmt: skip

    @staticmethod
    def from_bytes(content: bytes) -> Head:
        """The inverse of `to_bytes`."""
        try:
            value = json.loads(content)
            if value["format"] != FORMAT:
                raise StateError(f"results have format {value['format']}, and this version reads format {FORMAT}")
            return Head(
                value["origin"], value["generation"], value["batch"], Open.from_json(value["state"]),
                tuple((generation, batch) for generation, batch in value["batch_owners"]),
                tuple((generation, SnapshotId(epoch, part)) for generation, epoch, part in value["id_owners"]),
                value["waiting_since"], SnapshotId(*value["floor"]), value["rows"], value["snapshots"],
                tuple(value["marks_us"]), value["clock_us"], value["below_time_max_us"],
                value["writer"], value.get("shed", 0), value.get("lease", 0), value.get("base", 0),
                value.get("split_since"), tuple(BlockKey(*key) for key in value.get("replaced", ())),
                BaseId.from_json(value.get("newest_base")),
                value.get("tail", value["rows"]),  # a store from before there were several bases has one long tail
            )  # fmt: skip
        except (ValueError, KeyError, TypeError, IndexError) as cause:
            raise StateError(f"the head of a job's results is damaged: {cause}") from None

    def taken_over(self, generation: int) -> Head:
        """The head when `generation` begins to write."""
        batches = [owner for owner in self.batch_owners if owner[1] <= self.batch]
        ids = [owner for owner in self.id_owners if owner[1] < self.state.last]
        return replace(
            self,
            generation=generation,
            batch_owners=(*batches, (generation, self.batch + 1)),
            id_owners=(*ids, (generation, self.state.last)),
        )

    def based(self, generation: int, time_max_us: int | None) -> Head:
        """The head once a generation has written a base of results up to a time; None if there were no results."""
        below_us = latest_us((time_max_us, self.below_time_max_us))
        return replace(self, base=generation, below_time_max_us=below_us)

    @property
    def floor_base(self) -> BaseId | None:
        """The base of the snapshots up to `floor`."""
        return BaseId(self.floor, self.base) if self.base else None

    def has_base(self, base: BaseId) -> bool:
        """Whether readers may come to a base; if in doubt, yes.

        Snapshots that follow name it, so it is of the generation that wrote what follows, and none is newer than the
        newest that is named.
        """
        if base.upto <= self.floor:
            return base == self.floor_base
        if self.newest_base is None or base > self.newest_base:
            return False
        return base.generation == next((owner for owner, at in reversed(self.id_owners) if at <= base.upto), None)

    def owner_of_batch(self, batch: int) -> int | None:
        """The generation whose blocks of `batch` count."""
        return next((owner for owner, first in reversed(self.batch_owners) if first <= batch), None)

    def owner_of_id(self, id: SnapshotId) -> int | None:
        """The generation whose manifest of `id` counts."""
        return next((owner for owner, before in reversed(self.id_owners) if before < id), None)

    def owns(self, snapshot: Snapshot) -> bool:
        """Whether a manifest is of the generation that owned its id, committed and not removed."""
        return self.floor < snapshot.id <= self.state.last and self.owner_of_id(snapshot.id) == snapshot.generation


@dataclass(frozen=True, slots=True)
class Elsewhere:
    """What of a query's results went to other stores before.

    Args:
        batch: the last one that was committed there; -1 for none.
        ends, ended_us: what the policy remembered of periods after it, see `Open`.
    """

    batch: int = -1
    ends: tuple[Ends, ...] = ()
    ended_us: int | None = None

    def after(self, batch: int, state: Open) -> Elsewhere:
        """With what went to one more store, up to `batch`."""
        return self if batch <= self.batch else Elsewhere(batch, state.ends, state.ended_us)

    def state(self, batch: int, state: Open) -> Open:
        """How a policy goes on that was `state` after `batch`: periods have been counted on elsewhere since."""
        return state if batch >= self.batch else replace(state, ends=self.ends, ended_us=self.ended_us)

    def to_json(self) -> dict[str, Any]:
        """A plain mapping; `from_json` reads it back."""
        ends = {"ends": [one.to_json() for one in self.ends], "ended_us": self.ended_us} if self.ends else {}
        return {"batch": self.batch, **ends}

    @staticmethod
    def from_json(value: Mapping[str, Any]) -> Elsewhere:
        """The inverse of `to_json`."""
        return Elsewhere(value["batch"], tuple(map(Ends.from_json, value.get("ends", ()))), value.get("ended_us"))


NOTHING = Elsewhere()
"""All results of a query went to one store."""


def latest_us(times_us: Iterable[int | None]) -> int | None:
    """The latest of some result times, which may lie before 1970; None if there is none."""
    return max((one for one in times_us if one is not None), default=None)
