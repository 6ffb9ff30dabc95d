"""One-time questions: asked in threads, answered piece by piece, stopped as soon as nobody listens."""

from __future__ import annotations

import threading
import time
from collections.abc import Generator, Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from backend.problems import Problem, from_engine
from backend.results import at_once
from backend.results.at_once import NotAtOnce
from backend.results.conditions import bound_condition
from backend.results.holding import Holding
from backend.results.limits import Limits
from backend.results.places import Place, Places
from backend.results.question import QueryIn
from backend.results.readers import Opened, Readers
from backend.results.slots import Slots
from backend.results.trouble import store_problem
from backend.results.watch import Stopped, Watch
from backend.results.writers import WRITERS, Writer
from streamjoin.errors import InputError, StateError, StreamJoinError
from streamjoin.plan.expression import Expression
from streamjoin.plan.join import RESULT_KEY
from streamjoin.plan.schema import type_name
from streamjoin.results.aggregate import aggregate, parse_aggregates
from streamjoin.results.answer import ask
from streamjoin.results.description import Description
from streamjoin.results.finding import Answer
from streamjoin.results.question import Question
from streamjoin.results.reader import ExpiredError, Reader
from streamjoin.results.stores.store import StoreError

PIECE_BYTES = 64 << 10
TOGETHER = 64
"""So many rows are written in one go; the calls for each of many small blocks would cost more than the work."""
PIECE_S = 0.1
"""What has been found leaves after so long, however little it is."""


@dataclass(frozen=True, slots=True)
class Answerer:
    """What answers need of the process they run in."""

    places: Places
    readers: Readers
    limits: Limits
    slots: Slots
    holding: Holding

    def answer(self, asked: QueryIn, writer: Writer | None = None, actor: str | None = None) -> Running:
        """Begin an answer; nothing is read before its first step.

        Args:
            writer: of the format asked for unless given.
            actor: whose it is.
        Raises:
            Problem: too many answers are open.
        """
        self.slots.take(actor)
        return Running(self, asked, writer or WRITERS[asked.format](), actor)

    def at_once(self, asked: QueryIn, actor: str | None = None) -> tuple[Running, bytes] | None:
        """An answer and its first piece, in the event loop; None where that would hold others up, with nothing begun.

        Raises:
            Problem: as `answer` and `Running.step`.
        """
        if not at_once.may_be(asked) or self.places.known(asked.job) is None:
            return None
        running = self.answer(asked, actor=actor)
        try:
            return running, running.step_at_once()
        except NotAtOnce:
            return None


class Running:
    """An answer on its way. `step` runs in any thread; `abandon` may be called from another meanwhile.

    Args:
        about: what the answer is of; set with the first piece.
        end: how it ended; set with the last piece.
    """

    def __init__(self, answerer: Answerer, asked: QueryIn, writer: Writer, actor: str | None = None) -> None:
        self.asked = asked
        self.actor = actor
        self.writer = writer
        self.about: dict[str, Any] = {}
        self.end: dict[str, Any] | None = None
        self.schema = pa.schema([])
        self._answerer = answerer
        self._opened: Opened | None = None
        self._bound: Expression | None = None
        self._watch = Watch()
        self._lock = threading.Lock()
        self._closed = False
        self._held: list[bytes] = []
        self._found: list[pa.RecordBatch] = []
        self._begun = False
        limits = answerer.limits
        rows = limits.rows_default if asked.format == "json" else limits.rows
        self._row_cap = min(asked.limit or rows, limits.rows)
        self._seconds = min(asked.timeout_s or limits.seconds_default, limits.seconds)
        self._bytes = self._held_bytes = 0
        self._pieces = self._named()

    @property
    def limits(self) -> dict[str, Any]:
        """What the answer keeps to."""
        return {"rows": self._row_cap, "bytes": self._answerer.limits.bytes, "seconds": self._seconds}

    def step(self) -> bytes:
        """The next piece; b"" once there is none.

        Raises:
            Problem: it failed, and nothing in the answer says so.
        """
        try:
            with self._lock:
                return self._step()
        finally:
            if self._watch.stop:  # who closed it meanwhile did not wait
                self.close()

    def _step(self) -> bytes:
        if self._closed:
            return b""
        try:
            piece = next(self._pieces, b"")
        except BaseException:
            self._close()
            raise
        if not piece or self.end is not None:
            self._close()
        return piece

    def step_at_once(self) -> bytes:
        """The first piece, without waiting for anything; those after it may wait.

        Raises:
            NotAtOnce: it takes waiting, or too long. The answer is closed.
        """
        self._watch.in_loop = True
        try:
            return self.step()
        finally:
            self._watch.in_loop = False

    def abandon(self) -> None:
        """Stop reading; a step that is under way ends at the next block."""
        self._watch.stop = True

    def close(self) -> None:
        """Give back what it holds, without waiting. If a step is under way, the step does so when it ends."""
        self.abandon()
        if self._lock.acquire(blocking=False):
            try:
                self._close()
            finally:
                self._lock.release()

    def _close(self) -> None:
        if self._closed:
            return
        self._closed = True
        with suppress(Stopped):
            self._pieces.close()
        if self._opened is not None:
            self._answerer.readers.give(self._opened)
        self._answerer.holding.change(self.actor, self._held_bytes, 0)
        self._answerer.slots.give(self.actor)

    def _holds(self, size: int) -> None:
        try:
            self._answerer.holding.change(self.actor, self._held_bytes, size)
        except (InputError, Problem) as refused:
            self._watch.failure = refused
            raise
        self._held_bytes = size

    def _named(self) -> Generator[bytes]:
        """The pieces; what fails has a name, inside of the answer where its format has room for it."""
        try:
            yield from self._produce()
        except (StreamJoinError, Problem, RecursionError) as failure:
            problem = self._problem(failure)
            if self._begun:
                self._write_found()
            end = self._ended(None, "error")
            if not self._begun or (last := self.writer.fail(problem, end)) is None:
                raise problem from failure
            self.end = end
            yield b"".join([*self._held, last])

    def _problem(self, failure: Exception) -> Problem:
        place = self._opened.place if self._opened else None
        if isinstance(failure, Problem):
            return failure
        if isinstance(failure, RecursionError):
            return Problem("invalid.nested_too_deeply", "the condition is nested too deeply; write it flatter")
        if isinstance(failure, ExpiredError):
            return Problem(
                "conflict.expired", str(failure), hint="retention removed it; leave the cursor out to begin anew"
            )
        if place is not None and isinstance(failure, StoreError | StateError):
            return store_problem(place, failure)
        assert isinstance(failure, StreamJoinError)
        return from_engine(failure)

    def _produce(self) -> Iterator[bytes]:
        place = self._answerer.places.find(self.asked.job)
        self._opened = opened = self._answerer.readers.take(place, self._watch)
        self._watch.ends_s = time.monotonic() + self._seconds
        if self._watch.stop:
            return
        description, in_memory = opened.describe()
        if description.identity and self._watch.in_loop:
            raise NotAtOnce  # the last values of groups are found among all their changes
        recent = opened.recent if in_memory else None
        self._bound = bound_condition(self.actor, self.asked.where, description)
        if self.asked.aggregate is not None or self.asked.by is not None:
            table, answer = self._aggregate(opened, recent)
            yield from self._write(place, description, table.schema, table.to_batches(), answer)
            return
        answer = self._ask(opened, recent)
        yield from self._write(place, description, answer.schema, answer, answer)

    def _ask(self, opened: Opened, recent: Reader | None) -> Answer:
        question = self.asked.question(self._row_cap, self.asked.cursor, self._bound)
        by_range = self.asked.key_from is not None or self.asked.key_to is not None
        # Pages of a key range are in key order on each side of the seam, and the seam moves between two pages.
        if not by_range and recent is not None:
            with suppress(StreamJoinError):  # what is the question's fault comes again
                return ask(opened.durable, question, recent, self._holds)
        return ask(opened.durable, question, None, self._holds)

    def _aggregate(self, opened: Opened, recent: Reader | None) -> tuple[pa.Table, Answer]:
        asked = self.asked
        if asked.limit is not None or asked.cursor is not None or asked.select is not None:
            raise InputError("an aggregate is over all rows that answer; leave select, limit and cursor out")
        wanted = parse_aggregates(asked.aggregate or "count")
        question: Question = asked.question(bound=self._bound)
        try:
            most = self._answerer.limits.aggregate_bytes
            return aggregate(opened.durable, question, wanted, tuple(asked.by or ()), recent, self._holds, most)
        except Exception as failure:
            # DuckDB and Arrow hide what failed underneath of them.
            if self._watch.expired:
                raise Problem(
                    "invalid.too_slow",
                    f"the aggregate was not ready within {self._seconds:g} s; ask for a shorter range, "
                    f"or with a larger timeout_s ({self._answerer.limits.seconds:g} at most)",
                ) from None  # fmt: skip
            if self._watch.failure is not None:
                raise self._watch.failure from failure
            raise

    def _write(
        self,
        place: Place,
        description: Description,
        schema: pa.Schema,
        batches: Iterable[pa.RecordBatch],
        answer: Answer,
    ) -> Iterator[bytes]:
        held = self._held
        size, left_s = 0, time.monotonic()
        stopped_by: str | None = None
        rows = 0
        found = iter(batches)
        while True:
            try:
                if self._begun:  # who reads slowly holds what is there no longer than it was asked for
                    self._watch.check()
                batch = next(found, None)
            except Stopped:
                if self._watch.stop:
                    return
                stopped_by, batch = "time", None
            if not self.about:  # after the first read, so that what fails there still has a status of its own
                self.about, self.schema = _about(place, description, answer), schema
                held.append(self.writer.begin(schema, self.about))
            if batch is None:
                break
            rows += batch.num_rows
            self._watch.gives(batch.num_rows * batch.num_columns)
            self._found.append(batch)
            if sum(found.num_rows for found in self._found) < TOGETHER and time.monotonic() - left_s <= PIECE_S:
                continue
            size += self._write_found()
            if self._bytes >= self._answerer.limits.bytes:
                stopped_by = "bytes"
                break
            if size >= PIECE_BYTES or time.monotonic() - left_s > PIECE_S:
                piece, size, left_s = b"".join(held), 0, time.monotonic()
                held.clear()
                self._begun = True
                yield piece
        self._write_found()
        if stopped_by is None and answer.cursor is not None:
            stopped_by = "limit" if self._row_cap == self.asked.limit else "rows"
        end = self._ended(answer, stopped_by, rows)
        held.append(self.writer.end(end))
        self.end = end
        yield b"".join(held)

    def _write_found(self) -> int:
        """Write what was found and is not written yet; how many bytes it took."""
        found, self._found = self._found, []
        if not found:
            return 0
        if len(found) > 1:
            found = [pa.concat_batches([batch.replace_schema_metadata() for batch in found])]
        self._held.append(self.writer.write(found[0]))
        self._bytes += len(self._held[-1])
        return len(self._held[-1])

    def _ended(self, answer: Answer | None, stopped_by: str | None, rows: int = 0) -> dict[str, Any]:
        end: dict[str, Any] = {
            "rows_given": rows,
            "cursor": answer.cursor if answer else None,
            "truncated": stopped_by is not None,
            "stopped_by": stopped_by,
            "limits": self.limits,
            "not_finite": self.writer.not_finite,
        }
        if answer is not None:
            end |= {
                "blocks_read": answer.blocks_read, "blocks_wanted": answer.blocks_wanted,
                "blocks_stored": answer.blocks_stored, "rows_read": answer.rows_read, "snapshots": answer.snapshots,
            }  # fmt: skip
        return end


def _about(place: Place, description: Description, answer: Answer) -> dict[str, Any]:
    stored = description.schema
    kind = stored.field(RESULT_KEY).type if RESULT_KEY in stored.names else None
    return {
        "job": place.job_id,
        "job_name": place.job_name,
        "results": place.name,
        "last_snapshot": str(answer.last),
        "time": "the latest event time among a result's tuples",
        "key": None if kind is None else {"name": description.key_name, "type": type_name(kind)},
        "groups": list(description.identity),
    }


def headers_of(running: Running) -> Mapping[str, str]:
    """What is known of an answer when its first piece leaves; all of it, if that is the last one too."""
    found = {
        "Streamjoin-Last-Snapshot": running.about.get("last_snapshot", ""),
        "Streamjoin-Results": running.about.get("results", ""),
        "Streamjoin-Limits": ", ".join(f"{name}={value:g}" for name, value in running.limits.items()),
        "X-Accel-Buffering": "no",
    }
    if (end := running.end) is not None:
        found["Streamjoin-Rows"] = str(end["rows_given"])
        if end["truncated"]:
            found["Streamjoin-Stopped-By"] = end["stopped_by"]
        if end["cursor"]:
            found["Streamjoin-Cursor"] = end["cursor"]
    return found
