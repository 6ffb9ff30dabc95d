"""Jobs that do not end by themselves: new files, silent streams, and every way to stop."""

from __future__ import annotations

import json
import os
import re
import signal
import threading
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession

from streamjoin.spark import driver
from streamjoin.spark.batchreport import BatchReport
from streamjoin.spark.driver import Driver
from streamjoin.spark.progress import Progress
from streamjoin.spec.joinfile import parse
from streamjoin.spec.prepare import bind
from streamjoin.state.store import read_manifests
from tests.conformance.check import expected, plan
from tests.conformance.histories import history
from tests.servers import KafkaBroker, spark_connector_jars
from tests.servers.process import comes_true

from .command import RUN_S_MAX, Command
from .jobs import check_same, join_text, query, result_rows, run_text, unique, write_history

pytestmark = pytest.mark.spark

BATCHES = 6
BATCH_S_MAX = 300.0
CONDITION, WINDOW = "equality", "20 us"
OPERATOR = "name: biclique, routing: hash, r_units: 2, s_units: 2"


@dataclass
class Live:
    """A job that runs in another thread."""

    driver: Driver
    batches: list[BatchReport] = field(default_factory=list)
    stop: threading.Event = field(default_factory=threading.Event)
    failure: BaseException | None = None

    def run(self) -> None:
        """The thread."""
        self.driver.on_batch = lambda progress, batch: self.batches.append(batch)
        try:
            self.driver.run(until_end=False, stop=self.stop)
        except BaseException as failure:
            self.failure = failure

    def wait_for_tuples(self, r: int, s: int) -> None:
        """Wait until so many have been joined."""

        def are_there() -> bool:
            assert self.failure is None, self.failure
            return self.progress.tuples_in == [r, s]

        assert comes_true(are_there, BATCH_S_MAX), f"{self.progress.tuples_in} after {self.progress.batches} batches"

    @property
    def progress(self) -> Progress:
        """So far."""
        return self.driver.progress


@contextmanager
def live(session: SparkSession, text: str, folder: Path) -> Iterator[Live]:
    """Run a join file until the block ends."""
    bound = bind(parse(text, base=folder))
    job = Live(Driver(session, bound.job(), bound.sinks()))
    thread = threading.Thread(target=job.run, name="live job", daemon=True)
    thread.start()
    try:
        yield job
    finally:
        job.stop.set()
        thread.join(BATCH_S_MAX)
    assert not thread.is_alive(), "the job does not stop"
    assert job.failure is None, job.failure


def test_files_are_joined_as_they_appear_and_a_stop_loses_nothing(session: SparkSession, tmp_path: Path) -> None:
    given = history(1, r=12 * BATCHES, s=11 * BATCHES)
    # Nothing but files makes a batch.
    text = join_text(query(CONDITION, WINDOW), OPERATOR, run="slots: 2, heartbeat: 1h")
    write_history(given, tmp_path, BATCHES, [0])
    with live(session, text, tmp_path) as job:
        for number in range(1, BATCHES - 1):
            write_history(given, tmp_path, BATCHES, [number])
            job.wait_for_tuples(12 * (number + 1), 11 * (number + 1))
        done = job.progress.batches
    assert job.progress.batches <= done + 1, "it went on after it was told to stop"
    write_history(given, tmp_path, BATCHES, [BATCHES - 1])
    rest = run_text(session, text, tmp_path)
    assert rest.tuples_in == [12, 11]
    check_same(
        result_rows(tmp_path / "results"),
        Counter(expected(given, CONDITION, plan(given, CONDITION, WINDOW), BATCHES)),
    )


@pytest.mark.soak
def test_a_start_that_finds_nothing_to_read_says_so_and_one_that_does_a_batch_does_not(
    session: SparkSession, tmp_path: Path
) -> None:
    write_history(history(5), tmp_path, 1)
    text = join_text(query(CONDITION, WINDOW), OPERATOR, run="slots: 1, heartbeat: 1h")
    quiet = []
    for batches in (1, 0):
        with live(session, text, tmp_path) as job:
            said = threading.Event()
            job.driver.on_quiet = said.set
            if batches:
                job.wait_for_tuples(40, 40)
                time.sleep(3 * driver.POLL_S)  # it waits now, and has committed a batch
            else:
                assert comes_true(said.is_set, BATCH_S_MAX)
            quiet.append((said.is_set(), job.progress.batches))
    assert quiet == [(False, 1), (True, 0)]


def _tasks(session: SparkSession) -> int:
    store: Any = session.sparkContext._jsc.sc().statusStore()  # type: ignore[union-attr]  # it is there while Spark runs
    executors = store.executorList(True)
    return sum(executors.apply(number).activeTasks() for number in range(executors.size()))


def test_a_batch_that_a_stop_interrupts_is_no_failure_in_any_log(
    session: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(driver, "BATCH_GRACE_S", 0.0)
    monkeypatch.setattr(driver, "POLL_S", 0.01)
    given = history(3, r=12 * BATCHES, s=11 * BATCHES)
    write_history(given, tmp_path, BATCHES)
    text = join_text(query(CONDITION, WINDOW), OPERATOR, run="slots: 2")
    raised: list[str] = []
    with live(session, text, tmp_path) as job:
        commit = job.driver._commit

        def commit_and_stop(frame: DataFrame, batch: int) -> None:
            if batch == 1:
                job.stop.set()
            try:
                commit(frame, batch)
            except Exception as failure:
                raised.append(str(failure))
                raise

        job.driver._commit = commit_and_stop  # type: ignore[method-assign]
        assert comes_true(lambda: bool(raised), BATCH_S_MAX)
    # Spark searches these words, and on a real failure's many lines it runs out of stack.
    assert len(raised) == 1 and len(raised[0]) < 200 and "InterruptedException" in raised[0]
    assert [record for record in caplog.records if record.exc_info] == []
    # A process of its own would have ended, with its tasks; these may be writing state yet.
    assert comes_true(lambda: _tasks(session) == 0, BATCH_S_MAX)
    run_text(session, text, tmp_path)
    check_same(
        result_rows(tmp_path / "results"),
        Counter(expected(given, CONDITION, plan(given, CONDITION, WINDOW), BATCHES)),
    )


@pytest.mark.soak
def test_batches_begin_as_often_as_asked_at_most_and_a_stop_does_not_wait_for_the_next(
    session: SparkSession, tmp_path: Path
) -> None:
    given = history(4, r=12 * BATCHES, s=11 * BATCHES)
    write_history(given, tmp_path, BATCHES, [0])
    text = join_text(query(CONDITION, WINDOW), OPERATOR, run="slots: 2, heartbeat: 100ms, every: SPAN")
    with live(session, text.replace("SPAN", "1h"), tmp_path) as job:
        job.wait_for_tuples(12, 11)  # the first batch is at once
        write_history(given, tmp_path, BATCHES, [1])
        time.sleep(1.5)
        assert job.progress.batches == 1
        stopped_s = time.monotonic()
    assert time.monotonic() - stopped_s < 10
    with live(session, text.replace("SPAN", "1s"), tmp_path) as job:
        job.wait_for_tuples(12, 11)
        begun_s, done = time.monotonic(), job.progress.batches
        write_history(given, tmp_path, BATCHES, range(2, BATCHES))
        # A batch that takes longer than a second is followed at once, so two may be nearer to each other.
        assert comes_true(lambda: job.progress.batches >= done + 6, BATCH_S_MAX)
        assert time.monotonic() - begun_s > 3, "heartbeats alone would be ten a second"
    run_text(session, text.replace("SPAN", "1h"), tmp_path)  # to the end, which does not wait
    check_same(
        result_rows(tmp_path / "results"),
        Counter(expected(given, CONDITION, plan(given, CONDITION, WINDOW), BATCHES)),
    )


def test_batches_go_on_while_nothing_arrives_and_change_no_tuple(session: SparkSession, tmp_path: Path) -> None:
    given = history(2)
    write_history(given, tmp_path, 1)
    text = join_text(query(CONDITION, WINDOW), OPERATOR, run="slots: 2, heartbeat: 200ms")
    with live(session, text, tmp_path) as job:
        job.wait_for_tuples(40, 40)
        done = job.progress.batches
        assert comes_true(lambda: job.progress.batches >= done + 2, BATCH_S_MAX), "there is no heartbeat"
        stored, results, done = job.progress.stored_rows, job.progress.results, job.progress.batches
        assert comes_true(lambda: job.progress.batches >= done + 3, BATCH_S_MAX), "there is no heartbeat"
    assert job.progress.stored_rows == stored and job.progress.results == results
    assert sum(job.progress.tuples_in) == 80


def topics_file(folder: Path, broker: KafkaBroker, topics: dict[str, str], run: str, *spark: str) -> Path:
    """A join of the topics of r and s, in a folder."""
    streams = "\n".join(
        f"  {stream}: {{source: kafka, servers: '{broker.servers}', topic: {topic}, format: json, "
        "schema: {id: int64, ts: int64}, time: ts}"
        for stream, topic in topics.items()
    )
    settings = ", ".join([f"spark.jars: '{spark_connector_jars()}'", *spark])
    file = folder / "join.yaml"
    file.write_text(
        f"""
streams:
{streams}
query: SELECT ONLINE r.id AS r_id, s.id AS s_id FROM r, s WHERE r.id = s.id WITHIN 1 SECOND
operator: {{{OPERATOR}}}
results: {{parquet: results}}
run: {{checkpoint: checkpoint, slots: 1, {run}, spark: {{{settings}}}}}
"""
    )
    return file


@pytest.mark.soak
@pytest.mark.services
def test_a_silent_partition_does_not_hold_state_for_ever(broker: KafkaBroker, tmp_path: Path) -> None:
    topics = {"r": unique("silent-r"), "s": unique("silent-s")}
    for topic in topics.values():
        broker.create_topic(topic, partitions=2)

    def feed(stream: str, partition: int, times_s: range) -> None:
        rows = [json.dumps({"id": second, "ts": second * 1_000_000}).encode() for second in times_s]
        broker.produce(topics[stream], rows, partition)

    # Partition 1 brings one early row and falls silent; partition 0 goes on for 100 windows.
    for stream in topics:
        feed(stream, 1, range(1))
        feed(stream, 0, range(1, 101))
    file = topics_file(
        tmp_path, broker, topics,
        "offsets_per_batch: 20, heartbeat: 500ms", "spark.python.daemon.module: tests.spark.impatient",
    )  # fmt: skip

    def stored() -> list[int]:
        return [
            sum(info.rows for info in state.tuples())
            for _, state in read_manifests(tmp_path / "checkpoint" / "state")
            if state.version
        ]

    with Command(file, "--quiet") as command:
        results = tmp_path / "results"
        command.wait_until(lambda: result_rows(results).total() == 101, "joins not all rows", RUN_S_MAX)
        # Segments go as a whole, so the last batch of each stream may stay.
        command.wait_until(lambda: sum(stored()) <= 2 * 21, "keeps what cannot match any more", BATCH_S_MAX)
        os.kill(command.pid, signal.SIGTERM)
        assert command.exit_status() == 0
    assert result_rows(results) == Counter((number, number) for number in range(101))


@pytest.mark.soak
@pytest.mark.services
def test_a_job_of_topics_rests_until_something_arrives(broker: KafkaBroker, tmp_path: Path) -> None:
    topics = {"r": unique("rest-r"), "s": unique("rest-s")}
    for topic in topics.values():
        broker.create_topic(topic, partitions=1)
    file = topics_file(tmp_path, broker, topics, "heartbeat: 200ms")
    commits = tmp_path / "checkpoint" / "offsets" / "commits"

    def batches() -> int:
        return max((int(path.name) + 1 for path in commits.glob("[0-9]*")), default=0)

    with Command(file, "--quiet") as command:
        command.wait_until(lambda: batches() > 0, "commits no batch", RUN_S_MAX)
        time.sleep(5)
        # Without rest there would be a batch more for each 200 ms, or as long as one takes.
        assert batches() <= 2
        for topic in topics.values():
            broker.produce(topic, [json.dumps({"id": 7, "ts": 1_000_000}).encode()], 0)
        command.wait_until(lambda: result_rows(tmp_path / "results").total() == 1, "joins nothing", RUN_S_MAX)
        # What is stored may be due now, so heartbeats are as often as asked; at rest it would be one in 30 seconds.
        done = batches()
        command.wait_until(lambda: batches() >= done + 5, "has no heartbeats", 100)
        os.kill(command.pid, signal.SIGTERM)
        assert command.exit_status() == 0
    assert result_rows(tmp_path / "results") == Counter({(7, 7): 1})


@pytest.mark.parametrize(
    "how", ["the terminal's Ctrl-C", *(pytest.param(name, marks=pytest.mark.soak) for name in ("SIGINT", "SIGTERM"))]
)
def test_a_signal_ends_the_command_with_a_summary_and_leaves_no_process(
    how: str, session: SparkSession, tmp_path: Path
) -> None:
    given = history(4, r=60, s=50)
    write_history(given, tmp_path, BATCHES, range(BATCHES - 1))
    file = tmp_path / "join.yaml"
    text = join_text(query(CONDITION, WINDOW), OPERATOR)
    file.write_text(text)
    commits = tmp_path / "checkpoint" / "offsets" / "commits"
    with Command(file) as command:
        command.wait_until(lambda: len(list(commits.glob("[0-9]*"))) >= BATCHES - 1, "joins nothing", RUN_S_MAX)
        if how == "SIGTERM":  # once is enough
            refuses_a_second_driver(file, command.pid)
        if how == "the terminal's Ctrl-C":  # it goes to every process of the group
            os.killpg(command.pid, signal.SIGINT)
        else:
            os.kill(command.pid, getattr(signal, how))
        assert command.exit_status() == 0, command.output()
        said = command.output()
    assert "stopping after the current batch" in said
    assert re.search(r"results? from r 50, s 41 tuples", said), said
    assert "Traceback" not in said and "Exception" not in said
    write_history(given, tmp_path, BATCHES, [BATCHES - 1])
    run_text(session, text, tmp_path)
    check_same(
        result_rows(tmp_path / "results"),
        Counter(expected(given, CONDITION, plan(given, CONDITION, WINDOW), BATCHES)),
    )


@pytest.mark.soak
def test_a_second_signal_ends_the_command_at_once_and_without_a_stack(session: SparkSession, tmp_path: Path) -> None:
    given = history(4, r=60, s=50)
    write_history(given, tmp_path, BATCHES, range(BATCHES - 1))
    file = tmp_path / "join.yaml"
    text = join_text(query(CONDITION, WINDOW), OPERATOR)
    file.write_text(text)
    commits = tmp_path / "checkpoint" / "offsets" / "commits"
    with Command(file) as command:
        command.wait_until(lambda: any(commits.glob("[0-9]*")), "joins nothing", RUN_S_MAX)
        for _ in range(2):
            os.killpg(command.pid, signal.SIGINT)
            time.sleep(0.1)
        assert command.exit_status() == 130, command.output()
        said = command.output()
    assert "done again at the next start" in said and "Traceback" not in said and "ERROR" not in said
    write_history(given, tmp_path, BATCHES, [BATCHES - 1])
    run_text(session, text, tmp_path)
    check_same(
        result_rows(tmp_path / "results"),
        Counter(expected(given, CONDITION, plan(given, CONDITION, WINDOW), BATCHES)),
    )


def refuses_a_second_driver(file: Path, first: int) -> None:
    """The same checkpoint twice at a time."""
    other = file.with_name("other.yaml")
    other.write_text(file.read_text())
    with Command(other, "--until-end") as second:
        assert second.exit_status() == 2
        assert f"is in use by process {first}" in second.output() and "Traceback" not in second.output()
