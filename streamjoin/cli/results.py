"""Commands that read the results which a join file keeps in its store: query, tail."""

from __future__ import annotations

import signal
import sys
import threading
import time
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import cyclopts

from streamjoin.cli.joinfile import Set, load_join
from streamjoin.cli.terminal import counted
from streamjoin.errors import InputError
from streamjoin.spec.joinfile import JoinFile

if TYPE_CHECKING:
    from collections.abc import Iterator
    from collections.abc import Set as AbstractSet

    from pyarrow import RecordBatch

    from streamjoin.results.question import Question
    from streamjoin.results.reader import Reader

Output = Literal["table", "json", "ndjson", "csv", "arrow", "parquet"]
_LOOKS_EVERY_S = 0.2
"""How often `tail` looks whether there is a store."""
Of = Annotated[Output, cyclopts.Parameter(name=["-o", "--output"], help="Format of the rows.")]


@cyclopts.Parameter(name="*")
@dataclass(frozen=True)
class Asked:
    """What `query` asks.

    Parameters
    ----------
    from_, to
        The results' time (the latest event time among their tuples): ISO 8601, or integer microseconds.
    key
        The results' key: what the join's main predicate compares, on the side of the first stream.
    key_from, key_to
        A range of keys.
    select
        Columns, separated by commas.
    where
        A condition over the result columns, such as "price > 100".
    limit
        Rows at most.
    cursor
        Where an answer with a limit ended.
    after
        Only snapshots after this one.
    as_of
        Of groups that change: what they were at a snapshot, such as 41.0, or at a time.
    history
        Of groups that change: every change, and not the last value of each group.
    aggregate
        In place of the rows: count, or sum, avg, min, max, count_distinct of a column, such as "count, sum(price)".
    by
        Columns, separated by commas: one row of aggregates for each of their values.
    """

    from_: Annotated[str | None, cyclopts.Parameter(name="--from")] = None
    to: str | None = None
    key: str | None = None
    key_from: str | None = None
    key_to: str | None = None
    select: str | None = None
    where: str | None = None
    limit: int | None = None
    cursor: str | None = None
    after: str | None = None
    as_of: str | None = None
    history: Annotated[bool, cyclopts.Parameter(negative=())] = False
    aggregate: str | None = None
    by: str | None = None

    def question(self) -> Question:
        """The question to a reader.

        Raises:
            InputError: a time or a list of columns is none.
        """
        from streamjoin.results.question import Question
        from streamjoin.results.snapshot import is_id

        as_of: str | int | None = self.as_of
        if self.as_of is not None and not is_id(self.as_of):
            as_of = _time_us(self.as_of, "--as-of")
        from_us, to_us = _time_us(self.from_, "--from"), _time_us(self.to, "--to")
        return Question(
            from_us, to_us, self.key, self.key_from, self.key_to, _names(self.select), self.where, self.limit,
            self.cursor, self.after, as_of=as_of, history=self.history,
        )  # fmt: skip


NOTHING_ASKED = Asked()


def query(
    file: Path,
    *,
    asked: Asked = NOTHING_ASKED,
    of: str | None = None,
    set: Set = None,
    output: Of = "table",
    quiet: bool = False,
) -> None:
    """Ask the results that a join file keeps in its store. Ranges include both ends.

    Parameters
    ----------
    file
        The join file; its results name the store.
    of
        Which query's results, where the join file has several.
    output
        Format of the rows.
    quiet
        Only the rows.
    """
    from streamjoin.results.answer import ask
    from streamjoin.results.formats import FORMATS

    reader = _reader(load_join(file, set), of)
    question = asked.question()
    if asked.aggregate is not None or asked.by is not None:
        from streamjoin.results.aggregate import aggregate as compute
        from streamjoin.results.aggregate import parse_aggregates

        aggregates = parse_aggregates(asked.aggregate or "count")
        table, answer = compute(reader, question, aggregates, _names(asked.by, "--by") or ())
        FORMATS[output](table.schema, table.to_batches(), sys.stdout.buffer)
    else:
        answer = ask(reader, question)
        FORMATS[output](answer.schema, answer, sys.stdout.buffer)
    sys.stdout.buffer.flush()
    if not quiet:
        print(
            f"{counted(answer.rows, 'row')} from {answer.blocks_read:,} of {counted(answer.blocks_stored, 'block')} "
            f"in {counted(answer.snapshots, 'snapshot')}, up to snapshot {answer.last}",
            file=sys.stderr,
        )
        if answer.cursor:
            print(f"there may be more: --cursor {answer.cursor}", file=sys.stderr)


def tail(
    file: Path,
    *,
    after: str | None = None,
    key: str | None = None,
    select: str | None = None,
    where: str | None = None,
    of: str | None = None,
    set: Set = None,
    output: Annotated[
        Literal["table", "json", "ndjson", "csv", "arrow"], cyclopts.Parameter(name=["-o", "--output"])
    ] = "ndjson",
    quiet: bool = False,
) -> None:
    """Follow the results that a join file keeps in its store: each snapshot as it is committed, until Ctrl-C.

    If there is no store yet, this waits until `streamjoin run` has made one, and then shows all of its results.

    Parameters
    ----------
    file
        The join file; its results name the store.
    after
        Begin after this snapshot; only what is new unless set.
    key
        Only results of this key.
    select
        Columns, separated by commas.
    where
        A condition over the result columns.
    of
        Which query's results, where the join file has several.
    output
        Format of the rows.
    quiet
        Only the rows.
    """
    from streamjoin.results.question import Question
    from streamjoin.spec.outputs import store_job

    question, join = Question(key=key, select=_names(select), where=where), load_join(file, set)
    ours = {store_job(join.of(name)) for name in join.queries} if join.queries else {store_job(join)}
    _follow(_reader(join, of), ours, question, after, output, quiet=quiet)


def _follow(
    reader: Reader, ours: AbstractSet[str], question: Question, after: str | None, output: str, *, quiet: bool
) -> None:
    from streamjoin.results.follow import follow
    from streamjoin.results.formats import FORMATS
    from streamjoin.results.rows import Rows
    from streamjoin.results.snapshot import FIRST, SnapshotId

    begin = SnapshotId.parse(after) if after else None
    stop = threading.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda *_: stop.set())
    if _awaited(reader, ours, stop, quiet=quiet):
        begin = begin or FIRST  # what was committed between two looks is new, too
    if stop.is_set():
        return
    schema = Rows(question, reader.description.schema).schema

    def batches() -> Iterator[RecordBatch]:
        for news in follow(reader, after=begin, question=question, stop=stop):
            yield from news.rows
            sys.stdout.buffer.flush()
            if not quiet:
                shed = f", {counted(news.snapshot.shed, 'tuple')} shed meanwhile" if news.snapshot.shed else ""
                print(f"snapshot {news.snapshot.id}: {counted(news.snapshot.rows, 'row')}{shed}", file=sys.stderr)

    FORMATS[output](schema, batches(), sys.stdout.buffer)
    sys.stdout.buffer.flush()


def _reader(join: JoinFile, of: str | None) -> Reader:
    from streamjoin.results.reader import Reader
    from streamjoin.spec.outputs import store_job, store_spec

    if join.queries and of is None:
        raise InputError(f"this file has several queries; say which one: --of {' or --of '.join(join.queries)}")
    if of is not None:
        join = join.of(of)
    return Reader(store_spec(join).open(), store_job(join))


def _awaited(reader: Reader, ours: AbstractSet[str], stop: threading.Event, *, quiet: bool) -> bool:
    """Wait until the store is there and has results, or `stop`; whether there was anything to wait for.

    Args:
        ours: the names of all queries of the join file in the store; their results begin one after the other.
    Raises:
        InputError: the store has results, and none of this join file.
    """
    from streamjoin.results.stores.store import StoreMissingError

    waited = False
    while not stop.is_set():
        try:
            reader.description  # noqa: B018  # says that there is none
            break
        except StoreMissingError as cause:
            missing = str(cause)
        except InputError:
            jobs = reader.store.jobs()
            if jobs and ours.isdisjoint(jobs):  # a job's name may be wrong
                raise
            missing = "the store has no results yet; `streamjoin run` brings some"
        if not waited and not quiet:
            print(f"waiting: {missing}", file=sys.stderr, flush=True)
        waited = True
        time.sleep(_LOOKS_EVERY_S)
    return waited


def _names(text: str | None, option: str = "--select") -> tuple[str, ...] | None:
    if text is None:
        return None
    names = tuple(name.strip() for name in text.split(",") if name.strip())
    if not names:
        raise InputError(f"{option} takes names of columns, separated by commas")
    return names


def _time_us(text: str | None, option: str) -> int | None:
    if text is None:
        return None
    with suppress(ValueError):
        if -(2**62) <= (time_us := int(text)) <= 2**62:
            return time_us
    try:
        found = datetime.fromisoformat(text)
    except ValueError:
        raise InputError(
            f'{option} takes a time such as 2026-01-31T12:00:00Z, or microseconds, not "{text[:40]}"'
        ) from None
    found = found.replace(tzinfo=UTC) if found.tzinfo is None else found
    return (found - datetime(1970, 1, 1, tzinfo=UTC)) // timedelta(microseconds=1)
