"""The command line: exit status 0 done, 2 wrong input, 1 failed while running; one sentence on stderr, no stacks."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

import pyarrow as pa
import pyarrow.csv as pa_csv
import pyarrow.parquet as pq
import pytest

from streamjoin.cli import commands as cli
from streamjoin.engine.slot import SlotStep, StageJob
from streamjoin.engine.state import Table, UnitState
from streamjoin.engine.unit import UnitReport
from streamjoin.errors import InputError, RunError
from streamjoin.index.segment import SegmentInfo
from streamjoin.intake import rejected
from streamjoin.intake.deadletter import DeadLetter, write_dead_letters
from streamjoin.operators.biclique import Biclique
from streamjoin.plan.schema import StreamSchema
from streamjoin.query import plan_query
from streamjoin.state.store import StateStore

JOIN = """streams:
  orders: {source: csv, path: orders, time: ts}
  payments: {source: csv, path: payments.csv, time: ts, delay: 2s}
query: |
  SELECT ONLINE orders.id AS order_id, payments.id AS payment_id
  FROM orders, payments WHERE orders.k = payments.k WITHIN 10 SECONDS
results: {jsonl: -}
run: {slots: 2, checkpoint: state}
"""
STACK = "STREAMJOIN_TRACEBACK=1"
ORDERS = "ts,id,k\n2026-01-01T00:00:00Z,1,1\n2026-01-01T00:00:01Z,2,2\n2026-01-01T00:00:02Z,3,1\n"
PAYMENTS = "ts,id,k\n2026-01-01T00:00:01Z,10,1\n2026-01-01T00:00:05Z,11,2\n2026-01-01T00:00:30Z,12,1\n"


@dataclass(frozen=True)
class Said:
    status: int
    out: str
    err: str


Command = Callable[..., Said]


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with a join file, which is also the working directory."""
    (tmp_path / "orders").mkdir()
    (tmp_path / "orders" / "1.csv").write_text(ORDERS)
    (tmp_path / "payments.csv").write_text(PAYMENTS)
    (tmp_path / "join.yaml").write_text(JOIN)
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
def streamjoin(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Command:
    """The command, in this process."""
    monkeypatch.setenv("COLUMNS", "200")
    monkeypatch.setattr("streamjoin.cli.running._stop_on_signals", lambda stop: None)

    def call(*arguments: str) -> Said:
        monkeypatch.setattr(sys, "argv", ["streamjoin", *arguments])
        status = 0
        try:
            cli.main()
        except SystemExit as ended:
            status = int(ended.code or 0)
        out, err = capsys.readouterr()
        assert "Traceback" not in out + err
        return Said(status, out, err)

    return call


def in_a_process(*arguments: str, cwd: Path) -> Said:
    root = Path(__file__).parents[2]
    done = subprocess.run(
        [sys.executable, "-m", "streamjoin.cli.commands", *arguments],
        capture_output=True, text=True, cwd=cwd, timeout=300, env={**os.environ, "PYTHONPATH": str(root)},
    )  # fmt: skip
    assert "Traceback" not in done.stdout + done.stderr
    return Said(done.returncode, done.stdout, done.stderr)


# ---- as a process -----------------------------------------------------------------------------------------------


def test_wrong_file_is_said_in_one_line_on_stderr(folder: Path) -> None:
    (folder / "join.yaml").write_text(JOIN.replace("delay: 2s", "delay: 2"))
    said = in_a_process("validate", "join.yaml", cwd=folder)
    assert (said.status, said.out) == (2, "")
    assert said.err == (
        "streamjoin: streams.payments.delay: 2 is not a span of time; write a number and us, ms, s, min, h or d, "
        "such as 2s (join.yaml, line 3, column 57)\n"
    )


@pytest.mark.slow
def test_output_cut_off_by_its_reader_is_no_failure_to_talk_about(folder: Path) -> None:
    root = Path(__file__).parents[2]
    script = f"{sys.executable} -m streamjoin.cli.commands explain join.yaml --output json | head -c 1"
    done = subprocess.run(
        ["sh", "-c", script], capture_output=True, text=True, cwd=folder, timeout=300,
        env={**os.environ, "PYTHONPATH": str(root)},
    )  # fmt: skip
    assert (done.stdout, done.stderr) == ("{", "")


# ---- the command itself -----------------------------------------------------------------------------------------


def test_version_is_told(streamjoin: Command) -> None:
    said = streamjoin("--version")
    assert said.status == 0
    assert said.out.strip().count(".") == 2


@pytest.mark.parametrize("arguments", [(), ("--help",), ("-h",)])
def test_help_lists_the_commands(arguments: tuple[str, ...], streamjoin: Command) -> None:
    said = streamjoin(*arguments)
    assert said.status == 0
    for command in ("run", "validate", "explain", "preview", "compare", "state", "generate"):
        assert command in said.out


@pytest.mark.parametrize(
    "command", ["run", "validate", "explain", "preview", "compare", "generate", "state ls", "state show", "rejected"]
)
def test_every_command_explains_its_parameters(command: str, streamjoin: Command) -> None:
    said = streamjoin(*command.split(), "--help")
    assert said.status == 0
    assert f"Usage: streamjoin {command}" in said.out


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["rum", "join.yaml"], 'Unknown command "rum"'),
        (["validate"], "requires an argument"),
        (["validate", "join.yaml", "--untill-end"], "--untill-end"),
        (["validate", "join.yaml", "more"], "more"),
        (["explain", "join.yaml", "--output", "xml"], 'Choose from: "text", "json"'),
        (["generate", "band.r", "--out", "g", "--rows", "many"], "unable to convert"),
        (["generate", "band.r", "--out", "g", "--format", "orc"], 'Choose from: "parquet"'),
        (["generate", "band.r"], "--out"),
        (["state", "lst", "state"], "lst"),
        (["validate", "join.yaml", "--set"], "requires an argument"),
        (["validate", "join.yaml", "--set", "slots"], "--set takes FIELD=VALUE, such as operator.name=matrix"),
        (["validate", "join.yaml", "--set", "=1"], "--set takes FIELD=VALUE"),
        (["validate", "join.yaml", "--set", "run.slot=1"], 'run.slot: there is no such field; did you mean "slots"?'),
        (["validate", "no.yaml"], "there is no file no.yaml"),
        (["validate", "."], ". is a folder; a join file is a short text"),
        (["validate", "/dev/zero"], "/dev/zero is no file"),
        (["run", "no.yaml"], "there is no file no.yaml"),
        (["run", "join.yaml", "--report", "orders"], "orders is a folder; --report takes the name of a file"),
        (["compare", "join.yaml", "--operators", ","], "--operators takes names, separated by commas"),
        (["generate", "band.r", "--out", "s3://b/x"], '--out: "s3://b/x" is a URI, and this is written to a folder'),
        (["generate", "band.r", "--out", "file:///x"], '--out: is a URI; write the path alone, "/x"'),
        (["run", "join.yaml", "--report", "s3://b/x.json"], '--report: "s3://b/x.json" is a URI'),
        (["compare", "join.yaml", "--plot", "gs://b/x.svg"], '--plot: "gs://b/x.svg" is a URI'),
        (["support-bundle", "s3://k:secret@b/x.zip"], 'FILE: "s3://b/x.zip" is a URI'),
        (["state", "ls", "orders"], "orders is not a checkpoint of a job"),
        (["rejected", "join.yaml"], "join.yaml has not been run yet: there is no checkpoint"),
        (["rejected", "join.yaml", "--limit", "0"], "--limit"),
        (["state", "show", "no"], "no is not a checkpoint of a job"),
        (["generate", "nope", "--out", "g"], '"nope" is not a kind of generated stream; kinds are band.r'),
        (["generate", "band.r", "--out", "g", "--rows", "-5"], "need 0 rows or more"),
        (["generate", "band.r", "--out", "g", "--rate", "0"], "greater than 0"),
        (["generate", "band.r", "--out", "join.yaml"], "join.yaml is a file, or lies below one"),
        (["generate", "band.r", "--out", "join.yaml/x"], "join.yaml/x is a file, or lies below one"),
    ],
)
def test_wrong_input_is_status_2_with_a_sentence_on_stderr(
    arguments: list[str], message: str, streamjoin: Command, folder: Path
) -> None:
    said = streamjoin(*arguments)
    assert (said.status, said.out) == (2, "")
    assert message in said.err


@pytest.mark.parametrize(
    ("failure", "status", "message"),
    [
        (
            InputError("is wrong", field="run.slots"),
            2,
            "streamjoin: run.slots: is wrong (join.yaml, line 8, column 7)\n",
        ),
        (RunError("the disk is full"), 1, "streamjoin: the disk is full\n"),
        (PermissionError(13, "Permission denied", "/out"), 1, "streamjoin: /out: Permission denied\n"),
        (OSError("odd"), 1, "streamjoin: odd\n"),
        (KeyError("x"), 1, f"streamjoin: this is a mistake in StreamJoin: KeyError: 'x' ({STACK} shows where)\n"),
        (KeyboardInterrupt(), 130, ""),
    ],
    ids=lambda value: type(value).__name__,
)  # fmt: skip
def test_every_failure_has_its_status_and_one_sentence(
    failure: BaseException, status: int, message: str, streamjoin: Command, folder: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    def fail(*_: object) -> None:
        raise failure

    monkeypatch.setattr("streamjoin.spec.prepare.bind", fail)
    assert streamjoin("validate", "join.yaml") == Said(status, "", message)


def test_mistake_of_ours_shows_its_stack_when_asked(
    streamjoin: Command, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("streamjoin.spec.prepare.bind", lambda file: 1 // 0)
    monkeypatch.setenv("STREAMJOIN_TRACEBACK", "1")
    with pytest.raises(ZeroDivisionError):
        streamjoin("validate", "join.yaml")


def test_right_file_is_said_to_be_right(streamjoin: Command, folder: Path) -> None:
    said = streamjoin("validate", "join.yaml")
    what = "orders joins payments within 10 s, by biclique; allowed delay: orders none, payments 2 s"
    assert said == Said(0, f"join.yaml is right: {what}\n", "")


def test_relations_are_shown_with_columns_and_with_rows_where_files_tell(streamjoin: Command, folder: Path) -> None:
    pq.write_table(pa.table({"id": [1, 2], "name": ["a", "b"]}), folder / "customers.parquet")
    (folder / "cities.csv").write_text("id,name\n1,Ghent\n")
    relations = {"customers": "parquet", "cities": "csv"}
    said = streamjoin("validate", "join.yaml", *(
        part for name, source in relations.items()
        for part in ("--set", f"relations.{name}={{source: {source}, path: {name}.{source}}}")
    ))  # fmt: skip
    assert (said.status, said.err) == (0, "")
    assert said.out.splitlines()[1:] == [
        "relation customers: id int64, name string; 2 rows in 1 file",
        "relation cities: id int64, name string; 1 file",
    ]
    (folder / "customers.parquet").unlink()
    gone = streamjoin("validate", "join.yaml", "--set", "relations.c={source: parquet, path: customers.parquet}")
    assert (gone.status, gone.out) == (2, "")
    assert gone.err.startswith("streamjoin: relations.c.path: ") and gone.err.endswith("does not exist\n")


SHED = ("--set", "streams.orders.shed={threshold: 1000, capacity: 2500, base: 0.1}")


def test_that_results_may_be_partial_is_said_before_and_the_other_way_out_with_it(
    streamjoin: Command, folder: Path
) -> None:
    said = streamjoin("validate", "join.yaml", *SHED)
    way_out = "more units, and slots for them, are the other way out of an overload"
    assert said.out.endswith(f"under overload tuples of orders are shed and results partial; {way_out}\n")
    said = streamjoin("explain", "join.yaml", *SHED)
    assert (
        "shed        orders: from 1,000 live tuples a unit on 10% and more, all from 2,500 on (linear)\n"
        f"            results may be partial; {way_out}\n"
    ) in said.out
    assert "spark        cannot: Spark's own join drops no tuples under overload" in said.out
    found = json.loads(streamjoin("explain", "join.yaml", *SHED, "--output", "json").out)
    assert found["shed"] == {"orders": {"threshold": 1000, "capacity": 2500, "base": 0.1, "shape": "linear"}}
    without = json.loads(streamjoin("explain", "join.yaml", "--output", "json").out)
    assert without["shed"] == {}


HISTORY = "SELECT ONLINE orders.id AS a, payments.id AS b FROM orders, payments WHERE orders.k = payments.k"


@pytest.mark.parametrize(("operator", "copies"), [("biclique", 1), ("matrix", 2), ("spark", 1)])
def test_without_a_window_it_is_said_by_how_much_state_grows_an_hour(
    operator: str, copies: int, streamjoin: Command, folder: Path
) -> None:
    chosen = ("--set", f"operator.name={operator}", "--set", "run.slots=4")
    found = json.loads(streamjoin("explain", "join.yaml", *chosen, "--output", "json").out)
    assert (found["state_grows"], found["state_bytes_per_hour"]) == (False, None)
    found = json.loads(streamjoin("explain", "join.yaml", *chosen, "--set", f"query={HISTORY}", "--output", "json").out)
    hour = sum(one["tuples_per_s"] * one["tuple_bytes"] * 3600 for one in found["sampled"].values())
    assert found["state_grows"]
    assert found["state_bytes_per_hour"] == pytest.approx(copies * hour, rel=0.01)
    said = streamjoin("explain", "join.yaml", *chosen, "--set", f"query={HISTORY}").out
    assert re.search(r"full history: state grows without end, by [0-9,.]+ [KMG]?i?B an hour; the costs below", said)


def test_shedding_over_full_history_is_said_to_end_in_shedding_everything(streamjoin: Command, folder: Path) -> None:
    said = streamjoin("explain", "join.yaml", *SHED, "--set", f"query={HISTORY}")
    assert "so load never falls, and once units are full everything is shed\n" in said.out


@pytest.mark.parametrize(
    ("shed", "words"),
    [
        (7, "shed: orders 7; so results are partial"),
        (0, "shed: nothing in this run, but in an earlier one; so results"),
    ],
)
def test_a_run_that_shed_says_that_its_results_are_partial(
    shed: int, words: str, streamjoin: Command, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    none = {"orders": 0, "payments": 0}
    figures = {
        "operator": "biclique", "batches": 1, "tuples_in": {"orders": 9, "payments": 9}, "late": none,
        "dead_letters": none, "null_keys": none, "results": 1, "seconds": 1.0, "tuples_per_second": 18.0,
        "shed": {**none, "orders": shed}, "approximate": True,
    }  # fmt: skip
    monkeypatch.setattr("streamjoin.spark.run.run_file", lambda *_, **__: figures)
    assert words in streamjoin("run", "join.yaml").err
    figures["approximate"] = False
    assert "shed" not in streamjoin("run", "join.yaml").err


@pytest.mark.parametrize("command", [["run", "join.yaml", "--until-end"], ["compare", "join.yaml"]])
def test_stream_without_an_end_cannot_be_run_until_its_end(
    command: list[str], streamjoin: Command, folder: Path
) -> None:
    said = streamjoin(*command, "--set", "streams.orders={source: generator, kind: zipf.r, time: ts}")
    assert (said.status, said.out) == (2, "")
    assert said.err.startswith("streamjoin: streams.orders.rows: is missing; zipf.r never ends")


def test_failed_run_says_where_the_log_is(streamjoin: Command, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (folder / "state").mkdir()
    (folder / "state" / "spark.log").touch()

    def fail(*_: object, **__: object) -> None:
        raise RunError("1.parquet is damaged")

    monkeypatch.setattr("streamjoin.spark.run.run_file", fail)
    said = streamjoin("run", "join.yaml")
    assert said == Said(1, "", f"streamjoin: 1.parquet is damaged; the log is {folder / 'state' / 'spark.log'}\n")


# ---- preview ----------------------------------------------------------------------------------------------------


def test_preview_shows_rows_and_what_was_looked_at(streamjoin: Command, folder: Path) -> None:
    said = streamjoin("preview", "join.yaml")
    assert (said.status, said.err) == (0, "")
    first, *looked = said.out.split("\n\n")[0].splitlines()
    assert first == "a preview from samples, not a result; looked at"
    assert [line.split(":")[0].strip() for line in looked] == ["orders", "payments"]
    found = json.loads(streamjoin("preview", "join.yaml", "--output", "json").out)
    assert [one["name"] for one in found["streams"]] == ["orders", "payments"]
    assert found["queries"][0]["rows"] and found["queries"][0]["reason"] is None
    assert set(found["queries"][0]["rows"][0]) == {column["name"] for column in found["queries"][0]["columns"]}
    assert not (folder / "state").exists()


# ---- explain ----------------------------------------------------------------------------------------------------


def test_explanation_is_for_people(streamjoin: Command, folder: Path) -> None:
    said = streamjoin("explain", "join.yaml")
    assert (said.status, said.err) == (0, "")
    plan, table, note = said.out.split("\n\n")
    assert plan.splitlines() == [
        "join        orders with payments, within 10 s",
        "output      order_id int64, payment_id int64",
        "keep        orders: id, k",
        "            payments: id, k",
        "index       orders by hash of orders.k",
        "            payments by hash of payments.k",
        "then check  nothing: the index settles it",
        "delay       orders none, payments 2 s",
        "operator    biclique, hash routing, 2 units store R and 2 store S",
        "            chosen by auto; an equality sends equal keys to one unit of each side, the least there is to send",
        "sampled     orders: 1.5 tuples/s of event time, 24 bytes each, 20 stored",
        "            payments: 0.1 tuples/s of event time, 24 bytes each, 1.1 stored",
    ]
    head, *operators = table.splitlines()
    cells = [re.split(" {2,}", line) for line in (head, *operators)]
    assert cells[0] == [
        "operator", "memory", "replication", "comparisons/s", "bytes sent/s", "most to one unit/s", "useful slots",
    ]  # fmt: skip
    assert [line[0] for line in cells][1:3] == ["biclique", "matrix"]
    # 38.4 bytes a second come, each to a unit that stores and to one that probes, of four with a quarter each.
    assert cells[1][-3:] == ["77 B", "19 B", "over 4,096"]
    ends = {line[0]: line[-1] for line in cells[1:-1]}
    assert int(ends["splitjoin"].replace(",", "")) <= int(ends["matrix"].replace(",", "")) < 4096
    assert ends["handshake"] == ends["ring"] == "-"
    assert operators[-1] == "spark        can run it; no formula tells its costs"
    assert note.splitlines() == [
        "comparisons are those of a nested loop; an index needs a small part of them",
        "useful slots: with twice as many, each slot does less than half of what one alone does",
        "handshake forwards orders in blocks of 4 (J = 12.4) and payments in blocks of 1 (J = 2.02); a = 0.5, "
        "C_ser = 1, C_tr = 1, rates and windows as sampled",
    ]


@pytest.mark.parametrize(
    ("condition", "operator", "reason"),
    [
        ("orders.k = payments.k", "", "chosen by auto; an equality sends equal keys to one unit of each side"),
        ("ABS(orders.k - payments.k) <= 1", "", "chosen by auto; tuples match many others"),
        ("orders.k < payments.k", "", "chosen by auto; tuples match many others"),
        ("orders.k <> payments.k", "", "chosen by auto; any predicate can be joined"),
        ("orders.k = payments.k", "operator: {name: matrix}\n", "as the join file says"),
    ],
)
def test_explanation_gives_the_reason_for_its_operator(
    condition: str, operator: str, reason: str, streamjoin: Command, folder: Path
) -> None:
    (folder / "join.yaml").write_text(JOIN.replace("orders.k = payments.k", condition) + operator)
    lines = streamjoin("explain", "join.yaml").out.splitlines()
    place = next(number for number, line in enumerate(lines) if line.startswith("operator "))
    assert lines[place + 1].strip().startswith(reason)


SKEWED = """
streams:
  a: {source: generator, kind: zipf.r, time: ts, rows: 50000, options: {keys: 1000, skew: 1.2}}
  b: {source: generator, kind: zipf.s, time: ts, rows: 50000, options: {keys: 1000, skew: 0}}
query: SELECT ONLINE a.k FROM a, b WHERE a.k = b.k WITHIN 5 SECONDS
operator: {name: biclique, r_units: 8, s_units: 8}
"""


def test_explanation_warns_of_a_key_that_is_too_frequent_for_one_unit(streamjoin: Command, folder: Path) -> None:
    (folder / "skewed.yaml").write_text(SKEWED)
    said = streamjoin("explain", "skewed.yaml").out.splitlines()
    place = next(number for number, line in enumerate(said) if line.startswith("skew"))
    assert said[place : place + 2] == [
        "skew        a: one key has 24% of the sampled tuples, and by hash one unit of 8 gets all of them",
        "            routing: contrand spreads each key over a subgroup of units, random over all",
    ]
    found = json.loads(streamjoin("explain", "skewed.yaml", "--output", "json").out)
    assert found["described"] == "biclique, hash routing, 8 units store R and 8 store S"
    assert found["sampled"]["a"].keys() == {"tuples_per_s", "tuple_bytes", "tuples_stored"}
    assert found["hot_keys"] == {"a": {"share": 0.2369, "units": 8}}  # each key of b is as frequent as the others
    for harmless in ("operator.r_units=2", "operator.routing=random", "operator.name=matrix"):
        knobs = ("--set", "operator={name: matrix}") if harmless.endswith("matrix") else ("--set", harmless)
        assert "skew" not in streamjoin("explain", "skewed.yaml", *knobs).out


def test_explanation_stays_aligned_with_figures_of_any_size(streamjoin: Command, folder: Path) -> None:
    (folder / "join.yaml").write_text(
        "streams:\n"
        "  bids: {source: generator, kind: band.r, time: ts, rate: 900000000/s, rows: 1000000}\n"
        "  asks: {source: generator, kind: band.s, time: ts, rate: 900000000/s, rows: 1000000}\n"
        "query: SELECT ONLINE bids.id AS x, asks.id AS y FROM bids, asks WHERE ABS(bids.x - asks.a) < 9 WITHIN 9 DAYS\n"
    )
    said = streamjoin("explain", "join.yaml")
    table = said.out.split("\n\n")[1].splitlines()
    head, *operators = [line for line in table if "cannot" not in line]
    assert all(len(line) == len(head) for line in operators)
    assert any(len(line) > 80 for line in operators)


def test_operator_that_cannot_run_the_query_says_why(streamjoin: Command, folder: Path) -> None:
    (folder / "join.yaml").write_text(JOIN.replace("orders.k = payments.k", "orders.k < payments.k"))
    said = streamjoin("explain", "join.yaml")
    assert "cannot: Spark's stream-stream join needs an equality" in said.out


def test_costs_are_not_made_up_where_rates_are_unknown(streamjoin: Command, folder: Path) -> None:
    said = streamjoin("explain", "join.yaml", "--set", "streams.orders.time=arrival")
    assert said.status == 0
    assert "its costs need the streams' rates, not known yet" in said.out
    assert "sampled" not in said.out


def test_explanation_is_json_for_programs(streamjoin: Command, folder: Path) -> None:
    said = streamjoin("explain", "join.yaml", "--output", "json", "--set", "operator.name=matrix")
    found = json.loads(said.out)
    assert found["operator"] == "matrix"
    assert found["window"] == "within 10 s"
    options = {option["name"]: option for option in found["operators"]}
    assert list(options)[:2] == ["biclique", "matrix"]
    assert options["handshake"]["block_tuples"] == {"orders": 4, "payments": 1}
    assert "block_tuples" not in options["matrix"]
    assert options["biclique"]["growth"] == {"slots": None, "most": "reading"}
    assert options["matrix"]["growth"]["slots"] >= 2 and options["handshake"]["growth"] is None


# ---- generate ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("format", ["parquet", "csv", "jsonl", "arrow"])
def test_workload_is_written_in_every_format_and_can_be_joined(format: str, streamjoin: Command, folder: Path) -> None:
    for kind in ("zipf.r", "zipf.s"):
        said = streamjoin("generate", kind, "--out", kind, "--rows", "25", "--rows-per-file", "10", "--format", format)
        assert said == Said(0, f"25 rows of {kind} in 3 files in {kind}\n", "")
    assert sorted(path.name for path in (folder / "zipf.r").iterdir()) == [f"0000{n}.{format}" for n in range(3)]
    (folder / "join.yaml").write_text(
        "streams:\n"
        f"  r: {{source: {format}, path: zipf.r, time: ts}}\n"
        f"  s: {{source: {format}, path: zipf.s, time: ts}}\n"
        "query: SELECT ONLINE r.id AS a, s.id AS b FROM r, s WHERE r.k = s.k WITHIN 10 SECONDS\n"
    )
    assert streamjoin("validate", "join.yaml").status == 0


def test_same_seed_writes_the_same_rows(streamjoin: Command, folder: Path) -> None:
    for out, seed in (("a", "3"), ("b", "3"), ("c", "4")):
        streamjoin("generate", "zipf.r", "--out", out, "--rows", "50", "--seed", seed)
    tables = [pq.read_table(folder / out / "00000.parquet") for out in "abc"]
    assert tables[0] == tables[1] != tables[2]


def test_one_row_is_one_row(streamjoin: Command, folder: Path) -> None:
    said = streamjoin("generate", "band.r", "--out", "g", "--rows", "1", "--format", "csv")
    assert said.out == "1 row of band.r in 1 file in g\n"
    assert pa_csv.read_csv(folder / "g" / "00000.csv").num_rows == 1


# ---- state ------------------------------------------------------------------------------------------------------


@pytest.fixture
def checkpoint(folder: Path) -> Path:
    """The state of a join after one batch without tuples."""
    columns = pa.schema([("t", pa.timestamp("us", "UTC")), ("k", pa.int64())])
    streams = {name: StreamSchema(name, columns, "t") for name in ("r", "s")}
    plan = plan_query("SELECT ONLINE r.k FROM r, s WHERE r.k = s.k WITHIN 1 SECONDS", streams)
    root = folder / "checkpoint" / "state"
    job = StageJob(plan, Biclique(1, 1), 1)
    step = SlotStep(job, 0, 0, StateStore(root, sync=False))
    assert list(step.results()) == []
    return folder / "checkpoint"


def test_units_of_a_checkpoint_are_listed(streamjoin: Command, checkpoint: Path) -> None:
    for directory in (checkpoint, checkpoint / "state"):
        said = streamjoin("state", "ls", str(directory))
        assert said.status == 0
        head, *units, total = said.out.splitlines()
        assert head.split()[:4] == ["unit", "version", "segments", "rows"]
        assert [line.split()[0] for line in units] == ["0", "1"]
        assert total.split()[0] == "all"


def test_segments_of_one_unit_are_shown(streamjoin: Command, checkpoint: Path) -> None:
    said = streamjoin("state", "show", str(checkpoint), "--unit", "1")
    assert said.status == 0
    assert said.out.startswith("unit 1, version 1\n")
    assert "unit 0" not in said.out


def test_unit_that_is_not_there_is_refused_with_those_there_are(streamjoin: Command, checkpoint: Path) -> None:
    said = streamjoin("state", "show", str(checkpoint), "--unit", "7")
    assert said == Said(2, "", "streamjoin: there is no unit 7; units are 0, 1\n")


def test_damaged_manifest_is_status_1_and_named(streamjoin: Command, checkpoint: Path) -> None:
    [manifest] = (checkpoint / "state" / "0" / "1").glob("*.json")
    manifest.write_text(manifest.read_text()[:20])
    said = streamjoin("state", "ls", str(checkpoint))
    assert (said.status, said.out) == (1, "")
    assert f"{checkpoint / 'state'}: manifest 1.json is damaged" in said.err


def test_tables_of_any_name_are_listed_and_shown(streamjoin: Command, checkpoint: Path) -> None:
    segment = SegmentInfo("1-0.arrow", 4, 2 << 20, 0, 1_000_000, 0)
    tables = {
        "S": Table(1, (segment,)),
        "S sent": Table(1, (replace(segment, file="../1/1-1.arrow", rows=3),)),
        "answers": Table(None, (replace(segment, file="1-2.arrow", rows=500),)),
    }
    store = StateStore(checkpoint / "state", sync=False)
    store.commit(0, UnitState(2, tables, {"count": 1}), UnitReport(0, "any"))
    listed = streamjoin("state", "ls", str(checkpoint)).out.splitlines()
    assert listed[1].split()[:5] == ["0", "2", "2", "7", "4.0"], "tuples alone count"
    shown = streamjoin("state", "show", str(checkpoint), "--unit", "0").out.splitlines()
    assert [line.rpartition(", ")[2] for line in shown[1:3]] == ["watermark none yet"] * 2
    assert shown[3].split()[:3] == ["1-0.arrow", "4", "rows"] and "sent" not in shown[3]
    assert shown[4].split()[:3] == ["../1/1-1.arrow", "3", "rows"] and shown[4].endswith(", S sent")
    assert shown[5] == "  answers: 500 rows in files of 2.0 MiB"


# ---- rejected ---------------------------------------------------------------------------------------------------


@pytest.fixture
def put_aside(folder: Path) -> Path:
    """A join file whose checkpoint has rows put aside."""
    letters = folder / "state" / "dead-letters"
    text = b"\x1b[31m<b>,\xc2\x9b2J"
    for batch in range(3):
        file = rejected.file_of(letters, batch, "1-0:0")
        write_dead_letters(
            file, [DeadLetter("payments", "payments.csv", 4, "malformed", "why", text, "line")], batch, 0
        )
        counts = {"payments": {"malformed": 1, "late": 2}}
        taken = [rejected.Taken(file, {"payments": {"malformed": 1}})]
        rejected.add(letters, batch, counts, taken, sync=False)
    (folder / "state" / "job.json").write_text("{}")
    return folder / "join.yaml"


def test_rejected_counts_by_stream_and_reason(put_aside: Path, streamjoin: Command) -> None:
    said = streamjoin("rejected", str(put_aside))
    assert [line.split()[:4] for line in said.out.splitlines()] == [
        ["stream", "reason", "rows", "kept"], ["payments", "late", "6", "0"], ["payments", "malformed", "3", "3"],
    ]  # fmt: skip
    found = json.loads(streamjoin("rejected", str(put_aside), "--reason", "late", "-o", "json").out)
    assert [(row["reason"], row["rows"]) for row in found] == [("late", 6)]


def test_rejected_rows_come_in_pages_and_obey_no_terminal_commands(put_aside: Path, streamjoin: Command) -> None:
    said = streamjoin("rejected", str(put_aside), "--rows", "--limit", "2")
    assert len(said.out.splitlines()) == 3 and "payments.csv, line 4" in said.out
    assert "\x1b" not in said.out and "\x9b" not in said.out and "[31m<b>" in said.out
    rows = json.loads(streamjoin("rejected", str(put_aside), "--rows", "--limit", "2", "-o", "json").out)
    rest = streamjoin("rejected", str(put_aside), "--rows", "--before", rows[-1]["id"], "-o", "json").out
    assert [row["batch"] for row in (*rows, *json.loads(rest))] == [2, 1, 0]
    everything = streamjoin("rejected", str(put_aside), "-o", "ndjson").out
    assert [json.loads(line)["batch"] for line in everything.splitlines()] == [0, 1, 2]
    assert "\x9b" not in everything


# ---- run --------------------------------------------------------------------------------------------------------


@pytest.mark.spark
def test_first_join_of_a_newcomer_prints_its_results_and_puts_bad_records_aside(folder: Path) -> None:
    (folder / "payments.csv").write_text(PAYMENTS + '2026-01-01T00:00:31Z,13\n2026-01-01T00:00:31Z,14,"2\n')
    schema = "streams.payments.schema={ts: timestamp, id: int64, k: int64}"
    said = in_a_process("run", "join.yaml", "--until-end", "--report", "out/report.json", "--set", schema, cwd=folder)
    assert said.status == 0, said.err
    pairs = {(row["order_id"], row["payment_id"]) for row in map(json.loads, said.out.splitlines())}
    assert pairs == {(1, 10), (3, 10), (2, 11)}
    assert "3 results from orders 3, payments 3 tuples" in said.err
    assert "dead letters: payments 2" in said.err
    [letters] = (folder / "state" / "dead-letters").glob("*.jsonl")
    kept = [json.loads(line) for line in letters.read_text().splitlines()]
    assert [(line["position"], line["unit"], line["reason"]) for line in kept] == [
        (5, "line", "malformed"),
        (6, "line", "malformed"),
    ]
    assert json.loads((folder / "out" / "report.json").read_text())["results"] == 3
    assert "streamjoin rejected FILE shows them" in said.err


@pytest.mark.spark
def test_run_over_a_file_that_cannot_be_read_fails_with_its_name_and_the_log(folder: Path) -> None:
    (folder / "orders" / "2.csv").write_text("a,b\n2026-01-01T00:00:09Z,9\n")
    said = in_a_process("run", "join.yaml", "--until-end", "--quiet", cwd=folder)
    assert said.status == 1
    assert said.err == (
        f"streamjoin: {folder}/orders/2.csv has none of the columns ts, id, k; it has a, b; "
        f"the log is {folder}/state/spark.log\n"
    )


def test_a_place_is_told_of_what_the_file_says_and_not_of_what_is_set_or_missing(
    streamjoin: Command, folder: Path
) -> None:
    text = JOIN.replace("delay: 2s", "idle: 5ms")
    (folder / "join.yaml").write_text("\ufeff" + text)
    assert streamjoin("validate", "join.yaml").err.endswith("a shorter heartbeat (join.yaml, line 3, column 57)\n")
    set_too = streamjoin("validate", "join.yaml", "--set", "streams.payments.idle=6ms").err
    assert set_too.endswith("a shorter heartbeat\n")
    above = streamjoin("validate", "join.yaml", "--set", "streams.payments={source: csv, path: no.csv, time: ts}").err
    assert "no.csv does not exist" in above and "line" not in above
    (folder / "join.yaml").write_text(text.replace(", path: payments.csv", "").replace("idle: 5ms", "delay: 2s"))
    missing = streamjoin("validate", "join.yaml").err
    assert missing.startswith("streamjoin: streams.payments.path: is missing") and "line" not in missing
    (folder / "join.yaml").write_text(JOIN + "operator: {name: matrix}\noperator: {name: matrix}\n")
    assert streamjoin("validate", "join.yaml").err.count("line") == 1
    wrong = JOIN.replace("orders.id AS", "orders.no AS")
    (folder / "join.yaml").write_text(wrong)
    assert "query, line 1, column" in streamjoin("validate", "join.yaml").err


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        (
            ["results={store: sqlite, path: payments.csv}"],
            "results.path: .*payments.csv is not a SQLite database; name",
        ),
        (["results={store: sqlite, path: orders}"], "results.path: .*orders is a folder; the store is one file"),
        (
            ["results={store: sqlite, path: payments.csv/x.db}"],
            "results.path: .*payments.csv is a file; a file lies in a folder",
        ),
        (["results={parquet: out}", "run.checkpoint=./out/"], "results.parquet: .*out is the checkpoint too"),
        (["results={parquet: payments.csv}"], "results.parquet: .*payments.csv is a file; Parquet results"),
        (["results={jsonl: orders}"], "results.jsonl: .*orders is a folder; JSON lines results are one file"),
        (["results={jsonl: /proc/none/rows.jsonl}"], "results.jsonl: /proc/none cannot be made: No such file"),
        (["run.checkpoint=/proc/none/state"], "run.checkpoint: /proc/none/state cannot be made: No such file"),
        (["run.checkpoint=payments.csv"], "run.checkpoint: .*payments.csv is a file; a checkpoint is a folder"),
    ],
)
def test_validate_refuses_places_that_a_start_refuses(
    settings: list[str], said: str, folder: Path, streamjoin: Command
) -> None:
    there = sorted(folder.rglob("*"))
    found = streamjoin("validate", "join.yaml", *(part for one in settings for part in ("--set", one)))
    assert found.status == 2 and re.match(f"streamjoin: {said}", found.err), found.err
    assert sorted(folder.rglob("*")) == there


@pytest.mark.parametrize(
    "results", ["{store: sqlite, path: new/results.db}", "{store: sqlite, path: empty.db}", "{parquet: new/out}",
                "{jsonl: new/rows.jsonl}", "{discard: true}"],
)  # fmt: skip
def test_validate_accepts_places_that_can_be_made_and_makes_nothing(
    results: str, folder: Path, streamjoin: Command
) -> None:
    (folder / "empty.db").touch()
    there = sorted(folder.rglob("*"))
    found = streamjoin("validate", "join.yaml", "--set", f"results={results}")
    assert found.status == 0 and found.out.startswith("join.yaml is right"), found.err
    assert sorted(folder.rglob("*")) == there


def test_validate_says_which_of_several_queries_has_a_place_that_is_refused(folder: Path, streamjoin: Command) -> None:
    pair = "SELECT ONLINE orders.id FROM orders, payments WHERE orders.k = payments.k WITHIN 9 SECONDS"
    streams = JOIN.partition("query:")[0]
    (folder / "several.yaml").write_text(
        f'{streams}queries:\n  good: {{query: "{pair}", results: {{parquet: out}}}}\n'
        f'  bad: {{query: "{pair}", results: {{parquet: state}}}}\nrun: {{slots: 2, checkpoint: state}}\n'
    )
    found = streamjoin("validate", "several.yaml")
    assert found.status == 2 and found.err.startswith("streamjoin: queries.bad.results.parquet: "), found.err


def test_validate_refuses_a_checkpoint_of_another_operator(folder: Path, streamjoin: Command) -> None:
    pytest.importorskip("pyspark")
    from streamjoin.spark.checkpoint import opened
    from streamjoin.spec.joinfile import load
    from streamjoin.spec.prepare import bind

    assert streamjoin("validate", "join.yaml").status == 0
    with opened(bind(load(folder / "join.yaml")).job()):
        pass
    assert streamjoin("validate", "join.yaml").status == 0
    found = streamjoin("validate", "join.yaml", "--set", "operator.name=matrix")
    assert found.status == 2
    assert "the checkpoint began with biclique, and this says matrix" in found.err
