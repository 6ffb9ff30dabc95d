"""The command line: `streamjoin run | validate | explain | preview | compare | query | tail | rejected | state |
generate`, and those of the platform, `streamjoin up | streams | jobs | ask | watch | ...`."""

from __future__ import annotations

import json
import os
import shutil
import signal
import sys
import tempfile
import threading
import time
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal, NoReturn

import cyclopts

from streamjoin.cli.platform import add_commands
from streamjoin.cli.platform.rejected import RejectedOutput, RowLimit, Rows
from streamjoin.errors import InputError, RunError, StreamJoinError
from streamjoin.intake.shedding import OTHER_WAY_OUT
from streamjoin.spec.joinfile import JoinFile, load

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pyarrow import RecordBatch

    from streamjoin.results.reader import Reader

app = cyclopts.App(name="streamjoin", help="Exact online joins of data streams.", version_flags=["--version"])
state_app = cyclopts.App(name="state", help="Look into the state of a job.")
app.command(state_app)
add_commands(app)

Set = Annotated[
    list[str] | None, cyclopts.Parameter(name="--set", negative=(), help="FIELD=VALUE: set a field of the join file.")
]


def _overrides(pairs: list[str] | None) -> dict[str, str]:
    found = {}
    for pair in pairs or []:
        field, equals, value = pair.partition("=")
        if not equals:
            raise InputError(f'--set takes FIELD=VALUE, such as operator.name=matrix, not "{pair}"')
        found[field.strip()] = value
    return found


@app.command
def run(
    file: Path, *, until_end: bool = False, set: Set = None, report: Path | None = None, quiet: bool = False
) -> None:
    """Run a join file.

    Parameters
    ----------
    file
        The join file.
    until_end
        Join all that is there now, then exit.
    report
        Write figures of the run to this file, as JSON.
    quiet
        No progress line, no summary.
    """
    from streamjoin.spark.run import run_file
    from streamjoin.spec.inputs import require_ends

    _check_report(report)
    stop = threading.Event()
    _stop_on_signals(stop)
    join = load(file, _overrides(set))
    if until_end:
        require_ends(join)
    try:
        figures = run_file(join, until_end=until_end, stop=stop, show=None if quiet else _progress_line())
    except StreamJoinError as failure:
        _clear_line()
        log = join.checkpoint / "spark.log"
        if isinstance(failure, InputError) or not log.exists():
            raise
        raise RunError(f"{failure}; the log is {log}") from None
    if report:
        _write_json(report, figures)
    if not quiet:
        _clear_line()
        print(_summary(figures), file=sys.stderr)


@app.command
def validate(file: Path, *, set: Set = None) -> None:
    """Check a join file, its streams and its query, without running anything.

    Parameters
    ----------
    file
        The join file.
    """
    from streamjoin.explain.plans import relation_summary, summary
    from streamjoin.spec.inputs import open_relation
    from streamjoin.spec.prepare import bind

    join = load(file, _overrides(set))
    right = summary(bind(join))
    relations = [relation_summary(open_relation(join, name)) for name in join.relations]
    print("\n".join([f"{file} is right: {right}", *relations]))


@app.command
def explain(file: Path, *, set: Set = None, output: Literal["text", "json"] = "text") -> None:
    """Show how a join would be run, and what every operator would cost.

    Parameters
    ----------
    file
        The join file.
    output
        Text for people, JSON for programs.
    """
    from streamjoin.explain.plans import explain as explain_bound
    from streamjoin.spec.prepare import bind

    found = explain_bound(bind(load(file, _overrides(set))))
    print(json.dumps(found.to_json(), indent=1) if output == "json" else found)


@app.command
def preview(file: Path, *, set: Set = None, output: Literal["text", "json"] = "text") -> None:
    """Show up to 20 result rows, from samples of the streams. Nothing is started or written.

    Parameters
    ----------
    file
        The join file.
    output
        Text for people, JSON for programs.
    """
    from streamjoin.explain.preview import preview as preview_bound
    from streamjoin.spec.prepare import bind

    found = preview_bound(bind(load(file, _overrides(set))))
    print(json.dumps(found.to_json(), indent=1) if output == "json" else found)


@app.command
def compare(
    file: Path,
    *,
    operators: str = "biclique,matrix,spark",
    set: Set = None,
    report: Path | None = None,
    plot: Path | None = None,
    quiet: bool = False,
) -> None:
    """Run the same input through several operators, side by side. Ctrl-C shows those that have run so far.

    Parameters
    ----------
    file
        The join file.
    operators
        Names, separated by commas.
    report
        Write the figures of all runs to this file, as JSON.
    plot
        Draw the figures of all runs into this file, .svg or .png.
    quiet
        No progress line.
    """
    from streamjoin.explain.compare.plot import check_plot, draw
    from streamjoin.explain.compare.table import comparison_text
    from streamjoin.spark.compare import compare_file
    from streamjoin.spec.inputs import require_ends

    _check_report(report)
    if plot:
        check_plot(plot)
    stop = threading.Event()
    _stop_on_signals(stop)
    names = [name.strip() for name in operators.split(",") if name.strip()]
    if not names:
        raise InputError("--operators takes names, separated by commas, such as biclique,matrix")
    join = load(file, _overrides(set))
    require_ends(join)
    rows: list[dict[str, Any]] = []
    try:
        for row in compare_file(join, names, stop=stop, show=None if quiet else _progress_line()):
            rows.append(row)
    finally:  # What has run before a failure, or a second Ctrl-C, took long enough to be worth showing.
        _clear_line()
        if rows:
            print(comparison_text(rows))
            if report:
                _write_json(report, rows)
            if plot:
                draw(rows, plot, f"{join.name}: {', '.join(names)}")


@app.command
def generate(
    kind: str,
    *,
    out: Path,
    rows: int = 100_000,
    seed: int = 1,
    rate: float = 10_000.0,
    rows_per_file: int = 100_000,
    format: Literal["parquet", "csv", "jsonl", "arrow"] = "parquet",
) -> None:
    """Write a workload of the papers to files.

    Parameters
    ----------
    kind
        Such as band.r, zipf.s, nexmark.bid or tpch.lineitem.
    out
        The folder; it is made if it is not there.
    rows
        How many.
    seed
        The same seed gives the same rows.
    rate
        Rows a second of event time.
    rows_per_file
        Files are 00000, 00001 and so on.
    format
        Of the files.
    """
    from streamjoin.generate.files import write_files

    files = write_files(kind, out, rows=rows, seed=seed, rate=rate, rows_per_file=rows_per_file, format=format)
    print(f"{_counted(rows, 'row')} of {kind} in {_counted(len(files), 'file')} in {out}")


Output = Literal["table", "json", "ndjson", "csv", "arrow", "parquet"]
Of = Annotated[Output, cyclopts.Parameter(name=["-o", "--output"], help="Format of the rows.")]


@app.command
def query(
    file: Path,
    *,
    from_: Annotated[str | None, cyclopts.Parameter(name="--from")] = None,
    to: str | None = None,
    key: str | None = None,
    key_from: str | None = None,
    key_to: str | None = None,
    select: str | None = None,
    where: str | None = None,
    limit: int | None = None,
    cursor: str | None = None,
    after: str | None = None,
    aggregate: str | None = None,
    by: str | None = None,
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
    of
        Which query's results, where the join file has several.
    after
        Only snapshots after this one.
    aggregate
        In place of the rows: count, or sum, avg, min, max, count_distinct of a column, such as "count, sum(price)".
    by
        Columns, separated by commas: one row of aggregates for each of their values.
    output
        Format of the rows.
    quiet
        Only the rows.
    """
    from streamjoin.results.answer import ask
    from streamjoin.results.formats import FORMATS
    from streamjoin.results.question import Question

    reader = _reader(load(file, _overrides(set)), of)
    question = Question(
        _time_us(from_, "--from"),
        _time_us(to, "--to"),
        key,
        key_from,
        key_to,
        _names(select),
        where,
        limit,
        cursor,
        after,
    )
    if aggregate is not None or by is not None:
        from streamjoin.results.aggregate import aggregate as compute
        from streamjoin.results.aggregate import parse_aggregates

        table, answer = compute(reader, question, parse_aggregates(aggregate or "count"), _names(by, "--by") or ())
        FORMATS[output](table.schema, table.to_batches(), sys.stdout.buffer)
    else:
        answer = ask(reader, question)
        FORMATS[output](answer.schema, answer, sys.stdout.buffer)
    sys.stdout.buffer.flush()
    if not quiet:
        print(
            f"{_counted(answer.rows, 'row')} from {answer.blocks_read:,} of {_counted(answer.blocks_stored, 'block')} "
            f"in {_counted(answer.snapshots, 'snapshot')}, up to snapshot {answer.last}",
            file=sys.stderr,
        )
        if answer.cursor:
            print(f"there may be more: --cursor {answer.cursor}", file=sys.stderr)


@app.command
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
    from streamjoin.results.follow import follow
    from streamjoin.results.formats import FORMATS
    from streamjoin.results.question import Question
    from streamjoin.results.rows import Rows
    from streamjoin.results.snapshot import SnapshotId

    reader = _reader(load(file, _overrides(set)), of)
    stop = threading.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda *_: stop.set())
    question = Question(key=key, select=_names(select), where=where)
    begin = SnapshotId.parse(after) if after else None
    schema = Rows(question, reader.description.schema).schema

    def batches() -> Iterator[RecordBatch]:
        for news in follow(reader, after=begin, question=question, stop=stop):
            yield from news.rows
            sys.stdout.buffer.flush()
            if not quiet:
                shed = f", {_counted(news.snapshot.shed, 'tuple')} shed meanwhile" if news.snapshot.shed else ""
                print(f"snapshot {news.snapshot.id}: {_counted(news.snapshot.rows, 'row')}{shed}", file=sys.stderr)

    FORMATS[output](schema, batches(), sys.stdout.buffer)
    sys.stdout.buffer.flush()


@app.command(name="rejected")
def show_rejected(
    file: Path,
    *,
    rows: Rows = False,
    stream: str | None = None,
    reason: str | None = None,
    limit: RowLimit = 20,
    before: str | None = None,
    set: Set = None,
    output: RejectedOutput = "table",
) -> None:
    """Show which rows are missing from the results of a join file: how many by stream and reason, or each one.

    Parameters
    ----------
    file
        The join file.
    stream
        Only rows of this stream.
    reason
        Only rows with this reason.
    limit
        So many rows, newest first; all of them, oldest first, with -o ndjson.
    before
        Only rows before the one with this id.
    """
    from streamjoin.cli.platform.rejected import show_counts, show_rows
    from streamjoin.intake import rejected
    from streamjoin.spec.job import IDENTITY_FILE, dead_letters_folder

    checkpoint = load(file, _overrides(set)).checkpoint
    if not (checkpoint / IDENTITY_FILE).exists():
        raise InputError(f"{file} has not been run yet: there is no checkpoint {checkpoint}", field="run.checkpoint")
    folder = dead_letters_folder(checkpoint)
    if output == "ndjson":
        for lines in rejected.lines(folder, stream=stream, reason=reason):
            sys.stdout.buffer.write(lines)
    elif rows:
        try:
            found, has_more = rejected.page(folder, limit, stream=stream, reason=reason, before=before)
        except ValueError as wrong:
            raise InputError(f"--before: {wrong}") from None
        show_rows(found, has_more, output)
    else:
        show_counts(rejected.as_rows(rejected.read_head(folder), stream, reason), output)


def _reader(join: JoinFile, of: str | None) -> Reader:
    from streamjoin.results.reader import Reader
    from streamjoin.spec.outputs import store_job, store_spec

    if join.queries and of is None:
        raise InputError(f"this file has several queries; say which one: --of {' or --of '.join(join.queries)}")
    if of is not None:
        join = join.of(of)
    return Reader(store_spec(join).open(), store_job(join))


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
    try:
        return int(text)
    except ValueError:
        pass
    try:
        found = datetime.fromisoformat(text)
    except ValueError:
        raise InputError(
            f'{option} takes a time such as 2026-01-31T12:00:00Z, or microseconds, not "{text[:40]}"'
        ) from None
    found = found.replace(tzinfo=UTC) if found.tzinfo is None else found
    return (found - datetime(1970, 1, 1, tzinfo=UTC)) // timedelta(microseconds=1)


@state_app.command(name="ls")
def state_ls(directory: Path) -> None:
    """List the units of a checkpoint: versions, rows, bytes, segments.

    Parameters
    ----------
    directory
        A join's run.checkpoint.
    """
    from streamjoin.state.show import list_units

    print(list_units(directory))


@state_app.command(name="show")
def state_show(directory: Path, *, unit: int | None = None) -> None:
    """Show the segments of a checkpoint's units: rows, bytes, event times, ages.

    Parameters
    ----------
    directory
        A join's run.checkpoint.
    unit
        Only this one.
    """
    from streamjoin.state.show import show_units

    print(show_units(directory, unit))


def _counted(number: int, one: str, many: str | None = None) -> str:
    return f"{number:,} {one if number == 1 else many or one + 's'}"


def _stop_on_signals(stop: threading.Event) -> None:
    def ask(number: int, frame: Any) -> None:
        if stop.is_set():
            raise KeyboardInterrupt
        stop.set()
        _clear_line()
        print("stopping after the current batch; once more to stop at once", file=sys.stderr)

    signal.signal(signal.SIGINT, ask)
    signal.signal(signal.SIGTERM, ask)


def _progress_line() -> Any:
    begun = time.monotonic()

    def show(line: str) -> None:
        if sys.stderr.isatty():
            width = shutil.get_terminal_size().columns - 1
            text = f"{time.monotonic() - begun:6.1f} s  {line}"[:width]
            print(f"\r\x1b[K{text}", end="", file=sys.stderr, flush=True)

    return show


def _clear_line() -> None:
    if sys.stderr.isatty():
        print("\r\x1b[K", end="", file=sys.stderr)


def _check_report(path: Path | None) -> None:
    """Before the run: afterwards its figures would be lost."""
    if path is not None and path.is_dir():
        raise InputError(f"{path} is a folder; --report takes the name of a file")


def _write_json(path: Path, value: Any) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.NamedTemporaryFile("w", dir=path.parent, suffix=".tmp", delete=False) as file:
        json.dump(value, file, indent=1)
    Path(file.name).replace(path)


def _summary(figures: dict[str, Any]) -> str:
    sides = ", ".join(f"{name} {count:,}" for name, count in figures["tuples_in"].items())
    parts = [
        f"{_counted(figures['results'], 'result')} from {sides} tuples in {figures['seconds']:.1f} s "
        f"({figures['tuples_per_second']:,.{0 if figures['tuples_per_second'] >= 10 else 1}f} tuples/s, "
        f"{_counted(figures['batches'], 'batch', 'batches')}, {figures['operator']})"
    ]
    if queries := figures.get("queries"):
        parts.append(", ".join(f"{name} {_counted(counts['results'], 'result')}" for name, counts in queries.items()))
    for what in ("late", "dead_letters", "null_keys"):
        counted = {name: count for name, count in figures[what].items() if count}
        if counted:
            words = ", ".join(f"{name} {count:,}" for name, count in counted.items())
            parts.append(f"{what.replace('_', ' ')}: {words}")
    if figures.get("approximate"):
        shed = ", ".join(f"{name} {count:,}" for name, count in figures["shed"].items() if count)
        shed = shed or "nothing in this run, but in an earlier one"
        parts.append(f"shed: {shed}; so results are partial; {OTHER_WAY_OUT}")
    if any(figures["dead_letters"].values()):
        parts.append(f"dead letters are in {figures['dead_letter_folder']}; streamjoin rejected FILE shows them")
    return "\n".join(parts)


def main() -> None:
    """The entry point; exit status 2 for wrong input, 1 for a failure while running."""
    try:
        app(sys.argv[1:], exit_on_error=False, print_error=True)
        sys.stdout.flush()
    except cyclopts.CycloptsError:
        sys.exit(2)
    except InputError as wrong:
        _fail(str(wrong), 2)
    except StreamJoinError as failure:
        _fail(str(failure), 1)
    except BrokenPipeError:  # whoever read our output has seen enough
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(1)
    except OSError as failure:
        place = f"{failure.filename}: " if failure.filename else ""
        _fail(f"{place}{failure.strerror or failure}", 1)
    except KeyboardInterrupt:
        sys.exit(130)
    except Exception as mistake:
        if os.environ.get("STREAMJOIN_TRACEBACK"):
            raise
        kind = type(mistake).__name__
        _fail(f"this is a mistake in StreamJoin: {kind}: {mistake} (STREAMJOIN_TRACEBACK=1 shows where)", 1)


def _fail(message: str, status: int) -> NoReturn:
    _clear_line()
    print(f"streamjoin: {message}", file=sys.stderr)
    sys.exit(status)


if __name__ == "__main__":
    main()
