"""The commit contract, written once for every store: who may write a job's results, and what makes them visible.

A job has one head in the store. It says which generation (driver) writes now, which batch was committed last and which
snapshot is the newest. Everything else is written before it under names that nobody reads yet; replacing the head by
compare-and-set is the one step that makes a batch's snapshots visible. A driver that lost its lease fails right there:

    blocks (from the units)  ->  manifests, batch record  ->  head        <- visible from here on
                                                              ^ compare-and-set on the whole head

The head also says which generation owns each batch and each snapshot id: what a driver of another generation left under
the same numbers is garbage, is never read, and is swept.
"""

from __future__ import annotations

import uuid
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import fields, replace

from streamjoin.errors import InputError, RunError, StateError
from streamjoin.failpoints import failpoint
from streamjoin.results.base import BASE_UNIT, Bases
from streamjoin.results.block import BlockRef, refs_from_batch, refs_to_batch
from streamjoin.results.description import DESCRIPTION, Description, differs
from streamjoin.results.head import NOTHING, Elsewhere, Head
from streamjoin.results.names import LAST_GENERATION, batch_name, snapshot_name
from streamjoin.results.patience import Patience
from streamjoin.results.policy import BLOCKS_A_SNAPSHOT_MAX, Collected, Outcome, Policy
from streamjoin.results.snapshot import FIRST, Snapshot, SnapshotId, read_meta, with_meta
from streamjoin.results.splitting import SPLIT_UNIT, Splitter
from streamjoin.results.stores.store import BlockKey, Store, StoreDownError, StoreUncertainError


class FencedError(RunError):
    """Another driver of the same job has taken over; this one must stop, and has changed nothing."""


class Ledger:
    """The one writer of a job's results.

    Args:
        retain_us: snapshots that were closed longer ago than this are removed; None keeps all.
        publish: called with each snapshot, oldest first, after it became visible.
        forget: called with blocks that are in no snapshot and never will be.
        patience: how long the store may be down.
        elsewhere: what went to other stores before; it is not committed here.
    """

    def __init__(
        self,
        store: Store,
        job: str,
        description: Description,
        policy: Policy,
        *,
        retain_us: int | None = None,
        publish: Callable[[Snapshot], None] | None = None,
        forget: Callable[[Sequence[BlockKey]], None] | None = None,
        patience: Patience | None = None,
        elsewhere: Elsewhere = NOTHING,
    ) -> None:
        self.store = store
        self.job = job
        self.description = description
        self.policy = policy
        self.retain_us = retain_us
        self.publish = publish
        self.forget = forget
        self.patience = patience or Patience()
        self.elsewhere = elsewhere
        self._head = Head()
        self._stored: bytes | None = None
        self._waiting: list[BlockRef] = []
        self.bases = Bases(store, job, description, self.patience) if description.identity else None
        # When each snapshot was closed, and how many rows it has, oldest first.
        self._closed: deque[tuple[int, SnapshotId, int]] | None = None

    @property
    def head(self) -> Head:
        """The head as this driver wrote it last."""
        return self._head

    @property
    def waiting_rows(self) -> int:
        """Collected, and in no snapshot yet."""
        return sum(block.rows for block in self._waiting)

    def take_over(self, origin: str = "", lease: int = 0) -> int:
        """Become the job's writer: the generation to write with. Whoever wrote before can no longer commit.

        Args:
            origin: id of the checkpoint whose batches will come.
            lease: the generation of the platform's lease; a driver with an earlier one that wakes up late takes over
                nothing. 0 without a platform.
        Raises:
            FencedError: a driver with a later lease has taken over.
            InputError: the store has results of another query or checkpoint under this name.
        """
        self.patience.steadily(self.store.prepare)
        while True:
            stored = self.patience.steadily(lambda: self.store.head(self.job))
            before = Head() if stored is None else Head.from_bytes(stored)
            if stored is not None:
                self._check_description()
                if before.origin != origin:
                    # Batch numbers would begin anew, and those that the store knows already would be passed over.
                    raise InputError(
                        f"the store has results of another checkpoint under the name {self.job}; "
                        "name another results.job, or drop those results"
                    )
            else:
                self.patience.steadily(self._describe)
            if lease and lease < before.lease:
                raise FencedError(
                    f"a driver with a later lease, {before.lease}, has taken over job {self.job}; this one, with "
                    f"{lease}, stops"
                )
            after = replace(
                before.taken_over(before.generation + 1), origin=origin, writer=uuid.uuid4().hex,
                lease=max(lease, before.lease),
            )  # fmt: skip
            if self._swap(stored, after):
                break
        self._waiting, self._closed = self._load_waiting(), None
        if self.bases is not None:
            self.bases.begin(self._head)
        self.sweep()
        return self._head.generation

    def _describe(self) -> None:
        self.store.put_records(self.job, [(DESCRIPTION, self.description.to_bytes())])

    def _check_description(self) -> None:
        found = self.patience.steadily(lambda: list(self.store.get_records(self.job, DESCRIPTION, DESCRIPTION)))
        if not found:
            raise StateError(f"the results of job {self.job} lack their description; the store is damaged")
        there = Description.from_bytes(found[0][1])
        if other := [part.name for part in fields(there) if differs(part.name, there, self.description)]:
            raise InputError(
                f"the store has results of another query under the name {self.job} (other {' and '.join(other)}); "
                "name another results.job, or drop those results"
            )

    def _load_waiting(self) -> list[BlockRef]:
        since = self._head.waiting_since
        if since is None:
            return []
        found: list[BlockRef] = []
        names = batch_name(since), batch_name(self._head.batch, LAST_GENERATION)
        for _, content in self.patience.steadily(lambda: list(self.store.get_records(self.job, *names))):
            refs, meta = read_meta(content)
            if self._head.owner_of_batch(meta["batch"]) == meta["generation"]:
                found += refs_from_batch(refs)
        return found

    def commit(self, collected: Collected) -> list[Snapshot]:
        """Commit a batch: the snapshots that became visible with it. Doing it again changes nothing.

        Raises:
            FencedError: another driver has taken over.
            StoreError: the store failed for too long.
        """
        if collected.batch <= max(self._head.batch, self.elsewhere.batch):
            return []
        state = self.elsewhere.state(self._head.batch, self._head.state)
        ends_us = self.policy.ends_us(state, collected)
        splitter = Splitter(
            self.store, self.job, self.description, self.patience, self._head.generation, collected.batch
        )
        splitter.split([*self._waiting, *collected.blocks], ends_us)
        fresh = splitter.of(collected.blocks)
        out = self.policy.collect(state, splitter.of(self._waiting), replace(collected, blocks=fresh))
        shed = self._head.shed + collected.shed
        return self._apply(
            out, fresh, collected.batch, collected.marks_us, collected.clock_us, shed, tuple(splitter.parts)
        )

    def finish(self, *, for_good: bool = False) -> list[Snapshot]:
        """The streams have ended: what waits becomes visible, if the policy says so, or for good."""
        out = self.policy.finish(self._head.state, self._waiting, for_good=for_good)
        if not out.cuts:
            return []
        return self._apply(out, (), self._head.batch, self._head.marks_us, self._head.clock_us, self._head.shed)

    def _apply(
        self,
        out: Outcome,
        fresh: Sequence[BlockRef],
        batch: int,
        marks_us: tuple[int | None, ...],
        clock_us: int,
        shed: int,
        replaced: tuple[BlockKey, ...] = (),
    ) -> list[Snapshot]:
        generation = self._head.generation
        since = self._head.waiting_since
        first = batch if since is None else since
        oldest = self._oldest(batch)
        base = self.bases.named if self.bases and out.cuts else self._head.newest_base
        snapshots = [
            Snapshot.of(cut.id, generation, cut.blocks, marks_us, clock_us, (oldest, batch), shed, base)
            for cut in out.cuts
        ]
        records = [(snapshot_name(found.id, generation), found.to_bytes()) for found in snapshots]
        # While nothing closes a record has what came new; once something closed, all that is left.
        records += _records_of_waiting(batch, generation, out.waiting if out.cuts else fresh)
        failpoint("ledger.before_records")
        if records:
            self.patience.steadily(lambda: self.store.put_records(self.job, records))
        failpoint("ledger.before_head")
        after = replace(
            self._head,
            batch=batch,
            shed=0 if out.cuts else shed,
            state=out.state,
            waiting_since=first if out.waiting and not out.cuts else batch if out.waiting else None,
            rows=self._head.rows + sum(found.rows for found in snapshots),
            snapshots=self._head.snapshots + len(snapshots),
            marks_us=marks_us,
            clock_us=clock_us,
            split_since=oldest if any(block.key.unit == SPLIT_UNIT for block in out.waiting) else None,
            replaced=replaced[:BLOCKS_A_SNAPSHOT_MAX],
            newest_base=base,
        )
        if self.bases is not None:
            after = self.bases.with_tail(self._head, after, snapshots)
        self._replace_head(after)
        failpoint("ledger.after_head")
        self._waiting = out.waiting
        self._remove_replaced(replaced)
        if self._closed is not None:
            self._closed.extend((found.closed_us, found.id, found.rows) for found in snapshots)
        for found in snapshots:
            if self.publish:
                self.publish(found)
        if since is not None and out.cuts:
            self._forget_batches(batch if out.waiting else batch + 1)
        if snapshots and self.bases is not None:
            self.bases.write_due(self._head, self._owned)
        if self.retain_us is not None:
            self.expire(clock_us - self.retain_us)
        return snapshots

    def _replace_head(self, after: Head) -> None:
        if not self._swap(self._stored, after):
            raise FencedError(f"another driver has taken over job {self.job}; this one stops")

    def _oldest(self, batch: int) -> int:
        """The first batch whose results may wait, or be of `batch`."""
        since = () if self._head.split_since is None else (self._head.split_since,)
        return min((batch, *since, *(block.key.batch for block in self._waiting)))

    def _remove_replaced(self, keys: Sequence[BlockKey]) -> None:
        """Remove the blocks that the last commit split; nobody ever read them.

        After a crash it is done again with those that the head names. Others, of very many, stay and are never read.
        """
        if keys:
            self.patience.steadily(lambda: self.store.delete_blocks(self.job, keys))
            if self.forget:
                self.forget(keys)

    def _forget_batches(self, before: int) -> None:
        names = batch_name(0), batch_name(before - 1, LAST_GENERATION)
        old = [name for name, _ in self.patience.steadily(lambda: list(self.store.get_records(self.job, *names)))]
        if old:
            self.patience.steadily(lambda: self.store.delete_records(self.job, old))

    def _swap(self, expected: bytes | None, after: Head) -> bool:
        """Compare-and-set; an unknown outcome is read back before anything is decided."""
        new = after.to_bytes()

        def attempt() -> bool:
            try:
                return self.store.swap_head(self.job, expected, new)
            except StoreUncertainError:
                self.patience.retries += 1
                there = self.patience.steadily(lambda: self.store.head(self.job))
                if there == expected:  # not applied, or not yet: the same question again has one answer
                    raise StoreDownError(f"the result store gave no answer to the commit of job {self.job}") from None
                return there == new

        done = self.patience.steadily(attempt)
        if not done and self.patience.steadily(lambda: self.store.head(self.job)) == new:
            done = True  # an attempt that seemed lost had been applied
        if done:
            self._head, self._stored = after, new
        return done

    def expire(self, before_us: int) -> int:
        """Remove the snapshots that were closed before a time; how many there were.

        The head goes first: from then on nobody begins to read them. Then blocks, then the manifests that name them.
        Groups that change may keep them a little longer, see `Bases.pays`.
        """
        if self._closed is None:
            self._closed = deque(self._load_closed())
        old = rows = 0
        before = floor = self._head.floor
        for closed_us, id, count in self._closed:
            if closed_us >= before_us:
                break
            old, floor, rows = old + 1, id, rows + count
        if not old:
            return 0
        after = self._head
        if self.bases is not None:
            if not self.bases.pays(rows, before_us - self._closed[0][0], self.retain_us):
                return 0
            after = self.bases.replaced(after, self._owned(before, floor), floor)
        self._replace_head(replace(after, floor=floor))
        for _ in range(old):
            self._closed.popleft()
        failpoint("ledger.mid_expire")
        self._remove_expired(before)
        if self.bases is not None:
            self.bases.remove_old(self._head)
        return old

    def _load_closed(self) -> list[tuple[int, SnapshotId, int]]:
        return [(one.closed_us, one.id, one.rows) for one in self._owned(self._head.floor, self._head.state.last)]

    def _owned(self, after: SnapshotId, upto: SnapshotId) -> list[Snapshot]:
        """The snapshots with after < id <= upto, oldest first."""
        names = snapshot_name(after), snapshot_name(upto, LAST_GENERATION)

        def load() -> list[Snapshot]:
            found = (Snapshot.from_bytes(content) for _, content in self.store.get_records(self.job, *names))
            return [one for one in found if self._head.owns(one)]

        return self.patience.steadily(load)

    def _remove_expired(self, after: SnapshotId) -> None:
        """Remove manifests with after <= id <= floor, and the blocks of those that counted."""
        head = self._head
        if head.floor == FIRST:
            return
        names = snapshot_name(after), snapshot_name(head.floor, LAST_GENERATION)
        records = self.patience.steadily(lambda: list(self.store.get_records(self.job, *names)))
        found = [Snapshot.from_bytes(content) for _, content in records]
        # What a dead generation's manifest names may be in a later snapshot that counts.
        counted = [one for one in found if head.owner_of_id(one.id) == one.generation]
        keys = [block.key for one in counted for block in one.blocks]
        if keys:
            self.patience.steadily(lambda: self.store.delete_blocks(self.job, keys))
        if records:
            self.patience.steadily(lambda: self.store.delete_records(self.job, [name for name, _ in records]))

    def sweep(self) -> int:
        """Remove blocks and manifests that dead generations left and nobody will read; how many blocks there were."""
        head = self._head
        keys: Sequence[BlockKey] = self.patience.steadily(lambda: list(self.store.list_blocks(self.job)))
        dead = [
            key
            for key in keys
            if key.generation < head.generation
            and key.unit != BASE_UNIT
            and (key.batch > head.batch or head.owner_of_batch(key.batch) != key.generation)
        ]
        if dead:
            self.patience.steadily(lambda: self.store.delete_blocks(self.job, dead))
        self._remove_expired(FIRST)  # of a driver that died half-way
        self._remove_replaced(head.replaced)
        if self.bases is not None:
            self.bases.sweep(head)
        names = []
        # What was fenced while the previous generation wrote has ids from where that one began.
        since = head.id_owners[-2][1] if len(head.id_owners) > 1 else FIRST
        beyond = snapshot_name(max(since, head.floor)), snapshot_name(SnapshotId(10**19, 0))
        for name, content in self.patience.steadily(lambda: list(self.store.get_records(self.job, *beyond))):
            found = Snapshot.from_bytes(content)
            if found.generation < head.generation and not head.owns(found):
                names.append(name)
        if names:
            self.patience.steadily(lambda: self.store.delete_records(self.job, names))
        return len(dead)


def _records_of_waiting(batch: int, generation: int, blocks: Sequence[BlockRef]) -> list[tuple[str, bytes]]:
    """Records of blocks that wait after a batch; none is larger than that of a snapshot."""
    meta = {"batch": batch, "generation": generation}
    parts = [blocks[first : first + BLOCKS_A_SNAPSHOT_MAX] for first in range(0, len(blocks), BLOCKS_A_SNAPSHOT_MAX)]
    return [
        (batch_name(batch, generation, part), with_meta(refs_to_batch(some), meta)) for part, some in enumerate(parts)
    ]
