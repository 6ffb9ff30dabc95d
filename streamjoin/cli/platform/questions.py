"""`streamjoin ask` and `streamjoin watch`: the results of the platform's jobs."""

from __future__ import annotations

import csv
import json
import sys
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any, Literal

import cyclopts

from streamjoin.cli.platform.common import HERE, Where, names_of, note

if TYPE_CHECKING:
    from streamjoin.client import Answer, Client

Rows = Literal["table", "json", "ndjson", "csv", "arrow", "parquet"]
Quiet = Annotated[bool, cyclopts.Parameter(negative=(), help="Only the rows.")]


@cyclopts.Parameter(name="*")
@dataclass(frozen=True)
class Asked:
    """What `ask` asks.

    Parameters
    ----------
    from_, to
        The results' time: ISO 8601, or integer microseconds.
    key, key_from, key_to
        The results' key, or a range of keys.
    select
        Columns, separated by commas.
    where_
        A condition over the result columns, such as "price > 100".
    limit
        Rows at most.
    cursor
        Where an answer with a limit ended.
    after, upto
        Only snapshots after this one, and up to that one.
    as_of
        Of groups that change: what they were at a snapshot, such as 41.0, or at a time.
    history
        Of groups that change: every change, and not the last value of each group.
    aggregate
        In place of the rows, such as "count, sum(price)".
    by
        Columns, separated by commas: one row of aggregates for each of their values.
    timeout_s
        Seconds that the platform may take; what it found by then is shown. 60 unless given.
    """

    from_: Annotated[str | None, cyclopts.Parameter(name="--from")] = None
    to: str | None = None
    key: str | None = None
    key_from: str | None = None
    key_to: str | None = None
    select: str | None = None
    where_: Annotated[str | None, cyclopts.Parameter(name="--where")] = None
    limit: int | None = None
    cursor: str | None = None
    after: str | None = None
    upto: str | None = None
    as_of: str | None = None
    history: Annotated[bool, cyclopts.Parameter(negative=())] = False
    aggregate: str | None = None
    by: str | None = None
    timeout_s: Annotated[float | None, cyclopts.Parameter(name="--timeout")] = None

    def query(self, client: Client, job: str) -> Answer:
        """The platform's answer."""
        return client.query(
            job, from_=self.from_, to=self.to, key=self.key, key_from=self.key_from, key_to=self.key_to,
            select=names_of(self.select), where=self.where_, limit=self.limit, cursor=self.cursor, after=self.after,
            upto=self.upto, as_of=self.as_of, history=self.history, aggregate=self.aggregate, by=names_of(self.by),
            timeout_s=self.timeout_s,
        )  # fmt: skip


NOTHING_ASKED = Asked()


def ask(
    job: str,
    *,
    asked: Asked = NOTHING_ASKED,
    output: Annotated[Rows, cyclopts.Parameter(name=["-o", "--output"], help="Format of the rows.")] = "table",
    quiet: Quiet = False,
    where: Where = HERE,
) -> None:
    """Ask the results of a job of the platform. Ranges include both ends.

    Parameters
    ----------
    job
        Its id or name.
    """
    from streamjoin.results.formats import FORMATS

    with where.client() as client:
        answer = asked.query(client, job)
    FORMATS[output](answer.schema, answer.table.to_batches(), sys.stdout.buffer)
    sys.stdout.buffer.flush()
    if quiet:
        return
    note(f"{len(answer):,} rows, up to snapshot {answer.last}{_of(answer.results)}")
    if answer.cursor:  # also for programs: without it the rows would pass for all of them
        print(f"there may be more: --cursor {answer.cursor}", file=sys.stderr)
    elif answer.stopped_by:
        print(f"there may be more: the platform's limit of {answer.stopped_by} was reached", file=sys.stderr)


def watch(
    job: str,
    *,
    after: str | None = None,
    results: str | None = None,
    select: str | None = None,
    where_: Annotated[str | None, cyclopts.Parameter(name="--where")] = None,
    snapshots: Annotated[int | None, cyclopts.Parameter(help="End after so many.")] = None,
    output: Annotated[Literal["ndjson", "csv"], cyclopts.Parameter(name=["-o", "--output"])] = "ndjson",
    quiet: Quiet = False,
    where: Where = HERE,
) -> None:
    """Follow the results of a job of the platform: each snapshot once, as it is committed, until Ctrl-C.

    Parameters
    ----------
    job
        Its id or name.
    after
        Begin after this snapshot, or at the `oldest`; only what is new unless set.
    results
        Which results that snapshot is of, as was said when it was shown: a job that begins anew may use the same ids
        again, and then this is refused.
    select
        Columns, separated by commas.
    where_
        A condition over the result columns.
    output
        Format of the rows. In CSV columns that change, of a job that begins anew, follow an empty line.
    """
    with suppress(KeyboardInterrupt):
        _watch(where, job, (after, results), names_of(select), where_, snapshots, output, quiet)


def _watch(
    where: Where,
    job: str,
    begin: tuple[str | None, str | None],
    select: list[str] | None,
    condition: str | None,
    snapshots: int | None,
    output: str,
    quiet: bool,
) -> None:
    writer = csv.writer(sys.stdout, lineterminator="\n")
    seen = 0
    header: list[str] = []
    with where.client() as client:
        for news in client.tail(job, after=begin[0], results=begin[1], select=select, where=condition):
            if output == "csv":
                names = [column["name"] for column in news.columns]
                if names != header:  # a job that begins anew may have others
                    sys.stdout.write("\n" if header else "")
                    writer.writerow(names)
                    header = names
                writer.writerows([_csv_cell(value) for value in row] for row in news.rows)
            else:
                sys.stdout.writelines(json.dumps(row, ensure_ascii=False) + "\n" for row in news)
            sys.stdout.flush()
            if not quiet:
                note(f"snapshot {news.snapshot}{_of(news.results)}: {len(news.rows):,} rows")
            seen += 1
            if snapshots is not None and seen >= snapshots:
                return


def _of(results: str | None) -> str:
    return f" of {results}" if results else ""


def _csv_cell(value: Any) -> Any:
    """A value as JSON writes it, where Python's own word for it differs."""
    return json.dumps(value, ensure_ascii=False) if isinstance(value, bool | list | dict) else value
