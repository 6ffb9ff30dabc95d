"""The parts of the soak add up to what it promises, and only what passed counts."""

from __future__ import annotations

import subprocess
from collections import Counter
from functools import partial
from pathlib import Path

import duckdb
import pyarrow as pa
import pytest

from tests.conftest import in_share
from tests.soak import __main__ as command
from tests.soak import load, records, seeds
from tests.soak.looks import Kill, Look, Timeline
from tests.soak.queue import GOALS, PARTS, Part
from tests.soak.records import PRODUCT, ChangedError, Record


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    """A checkout with the product's folders in one commit."""
    root = tmp_path / "tree"
    for name in PRODUCT:
        path = root / name if "." in name else root / name / "code.py"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("a = 1\n")
    _git(root, "init", "--quiet")
    _commit(root)
    return root


def _git(root: Path, *words: str) -> None:
    who = ("-c", "user.name=a", "-c", "user.email=a@localhost", "-c", "commit.gpgsign=false")
    subprocess.run(["git", *who, *words], cwd=root, check=True)


def _commit(root: Path) -> None:
    _git(root, "add", ".")
    _git(root, "commit", "--quiet", "-m", "change")


def _record(part: str, what: str, amount: int, product: str) -> Record:
    return Record(part, what, amount, product, "abc", "2026-01-01T00:00:00+00:00", 1.0, ["right"])


def test_all_parts_together_come_to_the_goals_and_no_seed_is_played_twice() -> None:
    found = Counter[str]()
    for part in PARTS:
        found[part.what] += part.amount
    assert found == GOALS
    assert len({part.name for part in PARTS}) == len({(part.module, part.arguments) for part in PARTS}) == len(PARTS)
    for protocol in seeds.PROTOCOLS:
        played = [
            seed
            for part in PARTS
            if part.what == f"seeds of {protocol}"
            for piece in seeds.pieces(int(part.arguments[2]), int(part.arguments[4]))
            for seed in piece
        ]
        assert sorted(played) == list(range(GOALS[f"seeds of {protocol}"]))


def test_every_test_belongs_to_one_share() -> None:
    names = [f"tests/a.py::test_{number}[{number % 7}]" for number in range(400)]
    shares = [[name for name in names if in_share(name, f"{number}/8")] for number in range(1, 9)]
    assert sorted(name for share in shares for name in share) == sorted(names)
    assert all(shares)


def test_records_add_up_for_one_product_and_start_anew_when_it_changes(checkout: Path) -> None:
    before = records.product(checkout)
    for part in PARTS[:3]:
        records.keep(_record(part.name, part.what, part.amount, before), checkout)
    assert records.product(checkout) == before, "records are no part of the product"
    done = records.passed(before, checkout)
    assert [part.name for part in records.left(PARTS, done)] == [part.name for part in PARTS[3:]]
    assert records.sums(done.values()) == {**dict.fromkeys(GOALS, 0), "tests": 3}

    (checkout / "worker" / "code.py").write_text("a = 2\n")
    with pytest.raises(ChangedError, match=r"worker/code\.py differ from the commit"):
        records.product(checkout)
    _commit(checkout)
    after = records.product(checkout)
    assert after != before and records.passed(after, checkout) == {}


def test_a_part_that_fails_leaves_no_record(monkeypatch: pytest.MonkeyPatch, checkout: Path) -> None:
    monkeypatch.setattr(command, "ROOT", checkout)
    for name in ("product", "commit", "keep", "passed"):
        monkeypatch.setattr(command, name, partial(getattr(records, name), root=checkout))
    good = Part("good", "tests", 1, "timeit", ("-n", "1", "-r", "1", "pass"))
    bad = Part("bad", "tests", 1, "timeit", ("-n", "1", "-r", "1", "raise ValueError"))
    of = records.product(checkout)
    assert command.soak([bad, Part("next", "tests", 1, "timeit", after="bad"), good], of, None) == 1
    assert list(records.passed(of, checkout)) == ["good"]
    assert records.passed(of, checkout)["good"].said


def test_a_seed_that_is_wrong_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    def wrong(played: range) -> None:
        for seed in played:
            assert seed != 7, f"seed {seed}"

    monkeypatch.setitem(seeds.PROTOCOLS, "ring", wrong)
    assert seeds.play("ring", range(7)) == 7
    with pytest.raises(AssertionError, match="seed 7"):
        seeds.play("ring", range(5, 9))


@pytest.mark.parametrize("protocol", list(seeds.PROTOCOLS))
def test_seeds_of_each_protocol_can_be_played_from_any_first_one(protocol: str) -> None:
    assert seeds.play(protocol, range(41_000, 41_003)) == 3


def _looks(begin_s: float, memory: int, state: int) -> list[Look]:
    return [Look(begin_s + at_s, 1, 1, True, memory << 20, state << 20) for at_s in (10.0, 150.0, 290.0)]


def test_what_grows_under_load_is_told_and_what_comes_back_each_round_is_not(tmp_path: Path) -> None:
    looks = [*_looks(0, 300, 1), Look(20, 1, 1, False, 900 << 20, 1 << 20), *_looks(300, 320, 1), *_looks(600, 310, 1)]
    timeline = Timeline(looks, [Kill(60, "API")], [900.0], [7])
    timeline.write(tmp_path / "timeline.json")
    timeline = Timeline.read(tmp_path / "timeline.json")
    assert timeline.complaint() is None and timeline.begun_s == 900
    # A part that was cut off within its second round, which does not count.
    timeline.looks += [*_looks(900, 320, 1), *_looks(1_200, 9_000, 1)]
    timeline.ends_s.append(1_400.0)
    assert len(timeline.rounds()) == 4 and timeline.complaint() is None
    timeline.looks += _looks(1_400, 460, 1)
    timeline.ends_s.append(1_700.0)
    assert (told := timeline.complaint()) is not None and told.startswith("memory grew from 314,572,800")
    timeline.looks[-3:] = _looks(1_400, 300, 90)
    assert (told := timeline.complaint()) is not None and told.startswith("state grew")


def _joined(folder: Path, left_out: int) -> pa.RecordBatchReader:
    with duckdb.connect() as database:
        found = database.sql(
            f"""SELECT r.id AS r_id, s.id AS s_id FROM '{folder}/r/*.parquet' r JOIN '{folder}/s/*.parquet' s
            ON r.k = s.k AND abs(epoch_us(r.ts::TIMESTAMP) - epoch_us(s.ts::TIMESTAMP)) <= {load.WITHIN_S * 1_000_000}
            ORDER BY ALL OFFSET {left_out}"""
        ).to_arrow_table()
    return found.to_reader()


def test_a_row_that_is_missing_after_the_load_is_found(tmp_path: Path) -> None:
    for part in range(2):  # the second goes on with the first one's
        rows = load.Load(tmp_path, seed=part)
        rows.write(24_000)
    assert (rows.files, rows.rows) == (2, 48_000)
    assert load.check(tmp_path, _joined(tmp_path, 0)) > 10_000
    with pytest.raises(AssertionError, match="where DuckDB's join has"):
        load.check(tmp_path, _joined(tmp_path, 1))
