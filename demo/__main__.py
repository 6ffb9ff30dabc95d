"""Auctions and the bids on them, as two live streams: which bids met the reserve within ten seconds of the opening?

The streams are Nexmark's. They go through a real Kafka broker where one can be started, through files otherwise; the
join runs on Spark while they arrive. At the end the result is compared with DuckDB's over everything that was fed.
"""

from __future__ import annotations

import argparse
import shutil
import signal
import sys
import threading
import time
from contextlib import ExitStack
from pathlib import Path

import duckdb

from demo.feed import Feeder, FolderTarget, KafkaTarget, Target
from streamjoin.errors import StreamJoinError
from streamjoin.joinfile import JoinFile, parse
from streamjoin.prepare import bind
from streamjoin.spark.driver import BatchReport, Driver, Progress
from streamjoin.spark.run import open_session, topics_of
from tests.servers import KafkaBroker, ServerFailed, ServerUnavailable, spark_connector_jars

FOLDER = Path("demo-data")
STREAMS = {"auction": "nexmark.auction", "bid": "nexmark.bid"}
SHARES = {"auction": 3 / 50, "bid": 46 / 50}
CHECK_S = 15.0

QUERY = """\
  SELECT ONLINE auction.id AS auction, bid.bidder, bid.price, auction.reserve, auction.ts AS opened, bid.ts AS bid_at
  FROM auction, bid
  WHERE bid.auction = auction.id AND bid.price >= auction.reserve
  WITHIN (0 SECONDS, 10 SECONDS)
"""
SCHEMAS = {
    "auction": "{id: int64, reserve: int64, ts: timestamp}",
    "bid": "{auction: int64, bidder: int64, price: int64, ts: timestamp}",
}


def main() -> int:
    """Run the demo; exit status 1 when the result is not what the reference says."""
    parser = argparse.ArgumentParser(prog="make demo", description=__doc__)
    parser.add_argument("--check", action="store_true", help=f"end after {CHECK_S:.0f} seconds of live streams")
    parser.add_argument("--rate", type=float, default=20_000, help="events a second")
    parser.add_argument("--files", action="store_true", help="through files, even where Kafka could be started")
    options = parser.parse_args()
    shutil.rmtree(FOLDER, ignore_errors=True)
    FOLDER.mkdir()
    stop = threading.Event()
    signal.signal(signal.SIGINT, lambda *_: stop.set())
    signal.signal(signal.SIGTERM, lambda *_: stop.set())
    with ExitStack() as stack:
        broker = None if options.files else _broker(stack)
        file = _join_file(broker)
        print(f"\nthe join, {FOLDER}/join.yaml:\n\n{(FOLDER / 'join.yaml').read_text().partition('results:')[0]}")
        return _run(file, broker, options.rate, options.check, stop)


def _broker(stack: ExitStack) -> KafkaBroker | None:
    print("starting Kafka (the first time its jars are fetched) ...", flush=True)
    try:
        broker: KafkaBroker = stack.enter_context(KafkaBroker())
        for stream in STREAMS:
            broker.create_topic(stream)
        spark_connector_jars()
    except (ServerUnavailable, ServerFailed) as reason:
        print(f"no Kafka broker here: {reason}\nthe streams go through files instead")
        return None
    print(f"Kafka listens on {broker.servers}")
    return broker


def _join_file(broker: KafkaBroker | None) -> JoinFile:
    streams = []
    for stream in STREAMS:
        if broker:
            source = f"source: kafka, servers: '{broker.servers}', topic: {stream}, format: json"
            streams.append(f"  {stream}: {{{source},\n    schema: {SCHEMAS[stream]}, time: ts, delay: 2s}}")
        else:
            folder = (FOLDER / "streams" / stream).absolute()
            folder.mkdir(parents=True)
            streams.append(
                f"  {stream}: {{source: parquet, path: streams/{stream},\n    schema: {SCHEMAS[stream]}, time: ts, "
                "delay: 2s}"
            )
    text = "streams:\n" + "\n".join(streams) + f"\nquery: |\n{QUERY}"
    text += (
        "results: {parquet: results}\nrun: {checkpoint: checkpoint, files_per_batch: 100, offsets_per_batch: 1000000"
    )
    text += f", spark: {{spark.jars: '{spark_connector_jars()}'}}}}\n" if broker else "}\n"
    (FOLDER / "join.yaml").write_text(text)
    return parse(text, base=FOLDER.absolute(), name="demo")


def _run(file: JoinFile, broker: KafkaBroker | None, rate: float, check: bool, stop: threading.Event) -> int:
    target: Target = KafkaTarget(broker) if broker else FolderTarget(FOLDER / "streams")
    feeder = Feeder(target, STREAMS, SHARES, rate, FOLDER / "fed")
    bound = bind(file)
    job = bound.job()
    print("starting Spark ...", flush=True)
    session = open_session(file)
    live = Live(feeder, check, stop)
    try:
        driver = Driver(session, job, bound.sink(), topics_of(bound), live.on_batch)
        feeder.start()
        progress = driver.run(until_end=False, stop=live.done)
    finally:
        session.stop()
    print(f"\nfed      {', '.join(f'{count:,} {stream}s' for stream, count in feeder.fed.items())}")
    print(f"joined   {progress.results:,} bids met their auction's reserve, {progress.batches} batches")
    _show_rows()
    return _compare(progress)


class Live:
    """Prints progress, and ends the run once feeding has ended and everything fed has been joined."""

    def __init__(self, feeder: Feeder, check: bool, stop: threading.Event) -> None:
        self.feeder = feeder
        self.check = check
        self.stop = stop
        self.done = threading.Event()
        self._begun: float | None = None
        self._shown = 0.0
        self._ended = False
        self._last = (time.monotonic(), 0)

    def on_batch(self, progress: Progress, batch: BatchReport) -> None:
        """After every batch."""
        now = time.monotonic()
        self._begun = self._begun or now
        if not self._ended and (self.stop.is_set() or (self.check and now - self._begun > CHECK_S)):
            self._ended = True
            self.feeder.stop()
        if self._ended and sum(progress.tuples_in) >= sum(self.feeder.fed.values()):
            self.done.set()
        if now - self._shown >= 1 or self.done.is_set():
            count = sum(progress.tuples_in)
            rate = (count - self._last[1]) / (now - self._last[0])
            self._last, self._shown = (now, count), now
            print(
                f"{now - self._begun:5.1f} s  {rate:>9,.0f} tuples/s  {sum(progress.stored_rows):>9,} live tuples  "
                f"{progress.state_bytes / 2**20:>6.1f} MiB  {progress.results:>9,} results",
                flush=True,
            )


def _show_rows() -> None:
    if not list((FOLDER / "results").glob("*.parquet")):
        return
    found = duckdb.execute(f"SELECT * FROM '{FOLDER}/results/*.parquet' ORDER BY bid_at DESC LIMIT 5")
    print("the last five:")
    print("  " + "".join(f"{column[0]:>18}" for column in found.description or ()))
    for row in found.fetchall():
        print(
            "  "
            + "".join(f"{value:%H:%M:%S.%f}".rjust(18) if hasattr(value, "hour") else f"{value:>18,}" for value in row)
        )


def _compare(progress: Progress) -> int:
    fed = {stream: f"'{FOLDER}/fed/{stream}/*.parquet'" for stream in STREAMS}
    reference = f"""
        SELECT auction.id AS auction, bid.bidder, bid.price, auction.reserve, auction.ts AS opened, bid.ts AS bid_at
        FROM {fed["auction"]} auction JOIN {fed["bid"]} bid ON bid.auction = auction.id
        WHERE bid.price >= auction.reserve AND bid.ts - auction.ts BETWEEN INTERVAL 0 SECOND AND INTERVAL 10 SECOND"""
    joined = f"SELECT * FROM '{FOLDER}/results/*.parquet'"
    counts = duckdb.execute(f"""
        SELECT (SELECT count(*) FROM ({reference})),
               (SELECT count(*) FROM (({reference}) EXCEPT ALL ({joined}))),
               (SELECT count(*) FROM (({joined}) EXCEPT ALL ({reference})))""").fetchone()
    assert counts is not None
    expected, missing, extra = counts
    if missing or extra or sum(progress.late):
        print(f"checked  WRONG: of {expected:,} results {missing:,} are missing and {extra:,} are too many; "
              f"{sum(progress.late):,} tuples came late")  # fmt: skip
        return 1
    print(f"checked  exact: DuckDB finds the same {expected:,} results over all that was fed")
    return 0


if __name__ == "__main__":
    try:
        sys.exit(main())
    except StreamJoinError as failure:
        print(f"demo: {failure}", file=sys.stderr)
        sys.exit(1)
