"""Auctions and the bids on them, as two live streams: which bids met the reserve within ten seconds of the opening?

The streams are Nexmark's. They go through a real Kafka broker where one can be started, through files otherwise. The
whole platform is started, and everything is asked of its API: the streams are registered, the join runs as a job while
they arrive, and its results are followed as they are committed. At the end all results are compared with DuckDB's over
everything that was fed.
"""

from __future__ import annotations

import argparse
import fcntl
import os
import shutil
import signal
import sys
import tempfile
import textwrap
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

import duckdb

from demo.feed import Feeder, FolderTarget, KafkaTarget, Target
from demo.live import Figures, Tail
from demo.up import Platform
from streamjoin.client import Client
from streamjoin.errors import InputError, RunError, StreamJoinError
from streamjoin.spark.java import find_java
from tests.servers import KafkaBroker, ServerFailed, ServerUnavailable, spark_connector_jars

FOLDER = Path("demo-data")
STREAMS = {"auction": "nexmark.auction", "bid": "nexmark.bid"}
SHARES = {"auction": 3 / 50, "bid": 46 / 50}
JOB = "wins"
CHECK_S = 15.0
LOOK_S = 0.5
START_S_MAX = 180.0
QUIET_S_MAX = 60.0
"""A driver that died is back long before."""
TAIL_S_MAX = 120.0
QUERY_S_MAX = 600.0
FIRST_ROWS = 5
INTERRUPTED_STATUS = 130

QUERY = """\
SELECT ONLINE auction.id AS auction, bid.bidder, bid.price, auction.reserve, auction.ts AS opened, bid.ts AS bid_at
FROM auction, bid
WHERE bid.auction = auction.id AND bid.price >= auction.reserve
WITHIN (0 SECONDS, 10 SECONDS)
"""
SCHEMAS = {
    "auction": {"id": "int64", "reserve": "int64", "ts": "timestamp"},
    "bid": {"auction": "int64", "bidder": "int64", "price": "int64", "ts": "timestamp"},
}
RUN = {"files_per_batch": 100, "offsets_per_batch": 1_000_000}


class Interrupts:
    """What Ctrl-C does: it ends a start, or the streams once they are live; the second one ends everything at once."""

    def __init__(self) -> None:
        self.asked = threading.Event()
        self.are_streams_live = False
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            signal.signal(number, self._come)

    def _come(self, number: int, frame: object) -> None:
        if self.asked.is_set():
            os._exit(INTERRUPTED_STATUS)  # guards end every process that we started
        self.asked.set()
        if not self.are_streams_live:
            raise KeyboardInterrupt


def main() -> int:
    """Run the demo; exit status 1 when the result is not what the reference says."""
    parser = argparse.ArgumentParser(prog="make demo", description=__doc__)
    parser.add_argument("--check", action="store_true", help=f"end after {CHECK_S:.0f} seconds of live streams")
    parser.add_argument("--rate", type=float, default=20_000, help="events a second")
    parser.add_argument("--files", action="store_true", help="through files, even where Kafka could be started")
    options = parser.parse_args()
    interrupts = Interrupts()
    try:
        find_java()
        with ExitStack() as stack:
            stack.enter_context(_emptied(FOLDER))
            broker = None if options.files else _broker(stack)
            platform = _platform(stack, broker)
            client = stack.enter_context(
                Client(platform.url, timeout_s=QUERY_S_MAX, deadline_s=QUERY_S_MAX, reach_s=20)
            )
            demo = Demo(platform, client, broker, options.rate)
            demo.start()
            return demo.run(options.check, interrupts)
    except KeyboardInterrupt:
        print("\nended before the streams were live", flush=True)
        return INTERRUPTED_STATUS
    except (StreamJoinError, ServerFailed) as failure:
        print(f"\ndemo: {failure}", file=sys.stderr, flush=True)
        return 1


@contextmanager
def _emptied(folder: Path) -> Iterator[None]:
    """An empty folder that no other demo uses meanwhile."""
    folder.mkdir(exist_ok=True)
    held = os.open(folder, os.O_RDONLY)
    try:
        try:
            fcntl.flock(held, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise InputError(f"another demo runs in {folder.absolute()}; end it first") from None
        for left in folder.iterdir():
            shutil.rmtree(left) if left.is_dir() else left.unlink()
        # What is temporary goes here too, so that the next start removes it if this one is killed.
        temporary = folder.absolute() / "tmp"
        temporary.mkdir()
        tempfile.tempdir = str(temporary)
        yield
    finally:
        os.close(held)


def _broker(stack: ExitStack) -> KafkaBroker | None:
    try:
        with _step("kafka", "the first time its jars are fetched") as step:
            broker: KafkaBroker = stack.enter_context(KafkaBroker())
            for stream in STREAMS:
                broker.create_topic(stream)
            spark_connector_jars()
            step.said = f"listens on {broker.servers}"
    except (ServerUnavailable, ServerFailed) as reason:
        print(f"no Kafka broker here: {reason}\nthe streams go through files instead", flush=True)
        return None
    return broker


def _platform(stack: ExitStack, broker: KafkaBroker | None) -> Platform:
    settings = {"AUTH": "off", "ALLOWED_PATHS": str((FOLDER / "streams").absolute())}
    if broker:
        settings["SPARK_JARS"] = spark_connector_jars()
    log = FOLDER / "platform.log"
    platform: Platform = stack.enter_context(Platform(FOLDER / "platform", log, settings))
    with _step("platform", f"its log is {log}") as step:
        platform.start()
        step.said = f"{platform.url}, its log is {log}"
    return platform


@dataclass
class Step:
    """Something that takes seconds; `said` is shown beside its name."""

    name: str
    said: str
    begun_s: float

    def show(self, end: str = "") -> None:
        """Show how long it takes already; on a terminal in the same line again."""
        line = f"{self.name:<9} {time.monotonic() - self.begun_s:5.1f} s  {self.said}"
        if sys.stdout.isatty():
            print(f"\r\x1b[K{line}", end=end, flush=True)
        elif end:
            print(line, flush=True)


@contextmanager
def _step(name: str, said: str) -> Iterator[Step]:
    step = Step(name, said, time.monotonic())
    over = threading.Event()

    def tick() -> None:
        while not over.wait(LOOK_S):
            step.show()

    ticker = threading.Thread(target=tick, daemon=True)
    ticker.start()
    try:
        yield step
    finally:
        over.set()
        ticker.join()
        step.show("\n")


class Demo:
    """The join on a platform that is up.

    Args:
        broker: carries the streams; files do without it.
        rate_per_s: events a second, of both streams and a third that is not fed.
    """

    def __init__(self, platform: Platform, client: Client, broker: KafkaBroker | None, rate_per_s: float) -> None:
        self.platform = platform
        self.client = client
        self.broker = broker
        self.rate_per_s = rate_per_s
        target: Target = KafkaTarget(broker) if broker else FolderTarget(FOLDER / "streams")
        self.feeder = Feeder(target, STREAMS, SHARES, rate_per_s, FOLDER / "fed")
        self.figures = Figures(client, JOB)

    def start(self) -> None:
        """Register the streams, create the job, and wait until it runs.

        Raises:
            RunError: it does not run in time.
        """
        for stream in STREAMS:
            self.client.streams.create(stream, self._spec(stream))
        self.client.jobs.create(JOB, QUERY, run=RUN)
        with _step("job", f"{JOB} is created") as step:
            self.client.jobs.start(JOB)
            while True:
                self.platform.check()
                job = self.client.jobs.get(JOB)
                step.said = f"{JOB} is {job['phase']}"
                if job["phase"] == "running":
                    break
                if job["phase"] == "failed":
                    raise RunError(f"the job failed: {job['reason']}")
                if time.monotonic() - step.begun_s > START_S_MAX:
                    raise RunError(f"the job is {job['phase']} and not running after {START_S_MAX:g} s")
                time.sleep(LOOK_S)
        print(f"\nthe streams and the join:\n\n{textwrap.indent(self._text(), '  ')}")
        print(f"from another shell:\n\n{textwrap.indent(self._commands(), '  ')}", flush=True)

    def run(self, check: bool, interrupts: Interrupts) -> int:
        """Feed until told to stop, join what was fed, and compare; gives the exit status.

        Args:
            check: stop after CHECK_S.
        Raises:
            StreamJoinError: something failed meanwhile.
        """
        tail = Tail(self.client, JOB, "bid_at")
        interrupts.are_streams_live = True
        with self.feeder:
            self.feeder.start()
            until = f"for {CHECK_S:.0f} s" if check else "until Ctrl-C"
            print(f"feeding {self.rate_per_s:,.0f} events a second {until}; the first results take some seconds\n")
            self._watch(tail, check, interrupts.asked)
            fed = self.feeder.stop()
        print("\nfeeding has ended; joining the rest (a second Ctrl-C ends everything at once)", flush=True)
        self._join_rest(sum(fed.values()))
        return self._compare(tail)

    def _spec(self, stream: str) -> dict[str, Any]:
        common = {"schema": SCHEMAS[stream], "time": "ts", "delay": "2s"}
        if self.broker:
            return {"source": "kafka", "servers": self.broker.servers, "topic": stream, "format": "json", **common}
        folder = (FOLDER / "streams" / stream).absolute()
        folder.mkdir(parents=True)
        return {"source": "parquet", "path": str(folder), **common}

    def _text(self) -> str:
        streams = "".join(f"{stream:<8} {_flow(self._spec_shown(stream))}\n" for stream in STREAMS)
        return f"{streams}\n{QUERY}"

    def _spec_shown(self, stream: str) -> dict[str, Any]:
        spec: dict[str, Any] = self.client.streams.get(stream)["spec"]
        return {name: value for name, value in spec.items() if name != "schema"}

    def _commands(self) -> str:
        program = Path(sys.executable).with_name("streamjoin")
        with_host = "" if self.platform.is_at_home else f" --host {self.platform.url}"
        shown = os.path.relpath(program) if program.is_relative_to(Path.cwd()) else program
        return "".join(
            f"{line}\n"
            for line in (
                f"curl -s '{self.platform.url}/api/v1/jobs/{JOB}/results?limit=3'",
                f"{shown} ask {JOB} --where 'price > 50000000' --limit 5{with_host}",
                f"{shown} watch {JOB}{with_host}",
            )
        )

    def _watch(self, tail: Tail, check: bool, stop: threading.Event) -> None:
        """Show the job until it is to stop."""
        begun_s: float | None = None
        shown = False
        last_s, last_tuples = time.monotonic(), 0
        while not stop.wait(LOOK_S):
            self.platform.check()
            self.feeder.check()
            now_s = time.monotonic()
            if self.figures.look() and self.figures.tuples:
                begun_s = begun_s or now_s
                if tail.first and not shown:
                    shown = True
                    print(_table(tail.columns, tail.first[:: max(len(tail.first) // FIRST_ROWS, 1)][:FIRST_ROWS]))
                tuples = self.figures.tuples
                lag = "" if tail.lag_s is None else f"   newest {tail.lag_s:4.1f} s old"
                print(
                    f"{now_s - begun_s:5.1f} s {(tuples - last_tuples) / (now_s - last_s):>8,.0f} tuples/s "
                    f"{self.figures.live_tuples:>8,} live tuples {self.figures.state_bytes / 2**20:>5.1f} MiB "
                    f"{tail.rows:>9,} rows followed{lag}",
                    flush=True,
                )
                last_s, last_tuples = now_s, tuples
            if tail.failure is not None:
                raise RunError(f"the results could not be followed: {tail.failure}")
            if check and begun_s is not None and now_s - begun_s > CHECK_S:
                return

    def _join_rest(self, fed: int) -> None:
        """Wait until all that was fed has been joined, and what was found can be asked for."""
        before: tuple[int, int] | None = None
        changed_s = time.monotonic()
        while True:
            self.platform.check()
            self.figures.look()
            count = self.client.query(JOB, aggregate="count").to_arrow()
            now = (self.figures.tuples, int(count.column(0)[0].as_py()))
            if now[0] >= fed and now[1] == self.figures.results:
                return
            if now != before:
                before, changed_s = now, time.monotonic()
            elif time.monotonic() - changed_s > QUIET_S_MAX:
                # Reports of a driver that was killed may be missing; the comparison tells whether results are.
                print(f"nothing new for {QUIET_S_MAX:.0f} s: {now[0]:,} of {fed:,} tuples were reported", flush=True)
                return
            time.sleep(LOOK_S)

    def _compare(self, tail: Tail) -> int:
        """Compare all results with the reference, and tell; gives the exit status."""
        begun_s = time.monotonic()
        answer = self.client.query(JOB)
        if not answer.is_complete:
            raise RunError(f"the platform gave {len(answer):,} results and no more: {answer.stopped_by}")
        joined = answer.to_arrow()
        print(f"\nfed      {', '.join(f'{count:,} {stream}s' for stream, count in self.feeder.fed.items())}")
        print(f"asked    {len(answer):,} bids met their auction's reserve; they came as Arrow in "
              f"{time.monotonic() - begun_s:.2f} s")  # fmt: skip
        tail.wait_for(len(answer), TAIL_S_MAX)
        print(f"followed {tail.rows:,} of them as they were committed, in {tail.snapshots:,} snapshots")
        fed = {stream: f"'{FOLDER}/fed/{stream}/*.parquet'" for stream in STREAMS}
        reference = f"""
            SELECT auction.id AS auction, bid.bidder, bid.price, auction.reserve, auction.ts AS opened, bid.ts AS bid_at
            FROM {fed["auction"]} auction JOIN {fed["bid"]} bid ON bid.auction = auction.id
            WHERE bid.price >= auction.reserve AND bid.ts - auction.ts BETWEEN INTERVAL 0 SECOND AND INTERVAL 10 SECOND
            """
        with duckdb.connect() as database:
            database.register("joined", joined)
            database.execute(f"CREATE TABLE reference AS {reference}")
            counts = database.execute("""
                SELECT (SELECT count(*) FROM reference),
                       (SELECT count(*) FROM (FROM reference EXCEPT ALL FROM joined)),
                       (SELECT count(*) FROM (FROM joined EXCEPT ALL FROM reference))""").fetchone()
        assert counts is not None
        expected, missing, extra = counts
        if missing or extra or self.figures.late:
            print(f"checked  WRONG: of {expected:,} results {missing:,} are missing and {extra:,} are too many; "
                  f"{self.figures.late:,} tuples came late")  # fmt: skip
            return 1
        if tail.rows != len(answer):
            print(f"checked  WRONG: {tail.rows:,} rows were followed, and {len(answer):,} are there")
            return 1
        print(f"checked  exact: DuckDB finds the same {expected:,} results over all that was fed")
        return 0


def _flow(spec: Mapping[str, Any]) -> str:
    return "{" + ", ".join(f"{name}: {value}" for name, value in spec.items()) + "}"


def _table(columns: list[str], rows: list[list[Any]]) -> str:
    lines = ["  " + "".join(f"{column:>18}" for column in columns)]
    lines += ["  " + "".join(f"{_cell(value):>18}" for value in row) for row in rows]
    return "\n".join(lines) + "\n"


def _cell(value: Any) -> str:
    return f"{value:,}" if isinstance(value, int) else f"{datetime.fromisoformat(value):%H:%M:%S.%f}"


if __name__ == "__main__":
    status = main()
    if status == INTERRUPTED_STATUS:
        # An interruption that came while a module executed a text makes Python end by the signal, whoever handled it.
        sys.stdout.flush()
        os._exit(status)
    sys.exit(status)
