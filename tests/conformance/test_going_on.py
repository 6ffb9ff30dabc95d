"""A job whose streams had ended goes on with more rows: who was given as unmatched at the end stays so, and once."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from streamjoin.errors import InputError
from streamjoin.failpoints import FailpointError
from streamjoin.spec.joinfile import parse
from streamjoin.spec.prepare import bind
from tests import duck
from tests.failing import failing_at
from tests.relocating import WAYS, relocate

from .alone import run_alone

OPERATORS = {
    "matrix": "name: matrix, rows: 2, columns: 3",
    "biclique by hash": "name: biclique, routing: hash, r_units: 2, s_units: 3",
    "biclique at random": "name: biclique, routing: random, r_units: 2, s_units: 3",
    "splitjoin": "name: splitjoin, cores: 3",
}
TEXT = """\
query: '{query}'
streams:
  r: {{source: parquet, path: r, time: ts, delay: 2s}}
  s: {{source: parquet, path: s, time: ts, delay: 2s}}
operator: {{{operator}}}
results: {{parquet: out}}
run: {{checkpoint: checkpoint, files_per_batch: 1, slots: 2}}
"""
KINDS = ("LEFT", "RIGHT", "FULL", "LEFT SEMI", "LEFT ANTI")
BEGIN_S = 1_700_000_000


def arrive(folder: Path, number: int) -> None:
    """A file of each stream, of ten seconds that overlap with those before: those of r lag by two."""
    for side, stream in enumerate("rs"):
        chance = np.random.default_rng((side, number))
        times = BEGIN_S + 8 * number + chance.uniform(0, 10, 40) - 2 * (side == 0)
        (folder / stream).mkdir(exist_ok=True)
        pq.write_table(
            pa.table(
                {
                    "id": np.arange(40) + 40 * number,
                    "k": chance.integers(0, 60, 40),
                    "ts": pa.array((times * 1e6).astype(np.int64), pa.timestamp("us")),
                }
            ),
            folder / stream / f"{number}.parquet",
        )


def found(folder: Path) -> Counter[Any]:
    return Counter(duck.rows(f"SELECT * FROM '{folder / 'out'}/*.parquet'"))


@pytest.mark.parametrize(
    ("kind", "operator"),
    [
        *((kind, "matrix") for kind in KINDS),
        *(("FULL", operator) for operator in OPERATORS if operator != "matrix"),
        *(("LEFT SEMI", operator) for operator in ("biclique at random", "splitjoin")),
    ],
)
def test_rows_that_were_given_at_an_end_are_given_once(kind: str, operator: str, tmp_path: Path) -> None:
    one_sided = kind in ("LEFT SEMI", "LEFT ANTI")
    chosen = "r.id AS r" if one_sided else "r.id AS r, s.id AS s"
    query = f"SELECT ONLINE {chosen} FROM r {kind} JOIN s ON r.k = s.k WITHIN 20 SECONDS"
    text = TEXT.format(query=query, operator=OPERATORS[operator])
    late = 0
    for number in range(4):
        arrive(tmp_path, number)
        bound = bind(parse(text, base=tmp_path))
        before = found(tmp_path) if number else Counter()
        driver = run_alone(bound)
        after = found(tmp_path)
        assert not before - after
        late += driver.progress.late_after_final
    rows = [row[: 1 if one_sided else 2] for row in after.elements()]
    assert len(rows) == len(set(rows)) > 20
    if kind == "LEFT SEMI":
        # Nothing was given for an unmatched row, so its partner may come in a later run.
        r, s = (f"'{tmp_path}/{stream}/*.parquet'" for stream in "rs")
        wanted = duck.rows(
            f"SELECT DISTINCT r.id FROM {r} r, {s} s WHERE r.k = s.k AND abs(epoch_us(r.ts) - epoch_us(s.ts)) <= 20e6"
        )
        assert sorted(rows) == sorted(wanted) and late == 0
    assert late > 0 or kind == "LEFT SEMI"
    if one_sided:
        return
    pairs = [row for row in rows if None not in row]
    assert len(pairs) > 20
    for side, preserved in ((0, kind in ("LEFT", "FULL")), (1, kind in ("RIGHT", "FULL"))):
        with_partner, alone = {row[side] for row in pairs}, {row[side] for row in rows if row[1 - side] is None}
        assert not with_partner & alone
        assert with_partner | alone == set(range(160)) if preserved else not alone


def last_values(folder: Path) -> dict[Any, Any]:
    """What each group is after its last row."""
    rows = duck.rows(
        f"SELECT k, n FROM (SELECT *, row_number() OVER (PARTITION BY k ORDER BY emit_time DESC) AS place "
        f"FROM '{folder / 'out'}/*.parquet') WHERE place = 1 AND op = 'upsert'"
    )
    return dict(rows)


@pytest.mark.parametrize("every", ["5 SECONDS", "60 SECONDS"])
def test_groups_count_all_rows_at_each_end(every: str, tmp_path: Path) -> None:
    query = (
        "SELECT ONLINE r.k, COUNT(*) AS n FROM r, s WHERE r.k = s.k WITHIN 20 SECONDS GROUP BY r.k CUMULATIVE "
        f"EMIT EVERY {every}"
    )
    text = TEXT.format(query=query, operator=OPERATORS["biclique by hash"])
    for number in range(4):
        arrive(tmp_path, number)
        run_alone(bind(parse(text, base=tmp_path)))
        r, s = (f"'{tmp_path}/{stream}/*.parquet'" for stream in "rs")
        wanted = duck.rows(
            f"SELECT r.k, count(*) FROM {r} r, {s} s WHERE r.k = s.k AND abs(epoch_us(r.ts) - epoch_us(s.ts)) <= 20e6 "
            "GROUP BY 1"
        )
        assert last_values(tmp_path) == dict(wanted) != {}
        run_alone(bind(parse(text, base=tmp_path)))  # and nothing new
        assert last_values(tmp_path) == dict(wanted)


@pytest.mark.parametrize("how", WAYS)
def test_a_job_goes_on_where_its_folder_was_moved(how: str, tmp_path: Path) -> None:
    """Its files are not read again, and a batch that was begun is done with those that it had."""
    job, other = tmp_path / "job", tmp_path / "other"
    job.mkdir()
    text = TEXT.format(
        query="SELECT ONLINE r.id AS r, s.id AS s FROM r, s WHERE r.k = s.k WITHIN 20 SECONDS",
        operator=OPERATORS["matrix"],
    )
    for number in range(3):
        arrive(job, number)
    with failing_at("batch.before_commit", 2), pytest.raises(FailpointError):
        run_alone(bind(parse(text, base=job)))
    relocate(how, job, other)
    for _ in range(2):
        arrive(other, 3)
        run_alone(bind(parse(text, base=other)))
        r, s = (f"'{other}/{stream}/*.parquet'" for stream in "rs")
        wanted = duck.rows(
            f"SELECT r.id, s.id FROM {r} r, {s} s WHERE r.k = s.k AND abs(epoch_us(r.ts) - epoch_us(s.ts)) <= 20e6"
        )
        assert found(other) == Counter(wanted)


def test_a_batch_that_is_done_again_keeps_the_idle_that_it_had(tmp_path: Path) -> None:
    text = TEXT.format(
        query="SELECT ONLINE r.id AS r, s.id AS s FROM r, s WHERE r.k = s.k WITHIN 20 SECONDS",
        operator=OPERATORS["matrix"],
    )
    other = text.replace("delay: 2s", "delay: 2s, idle: 90s", 1)
    arrive(tmp_path, 0)
    with failing_at("batch.after_commit"), pytest.raises(FailpointError):
        run_alone(bind(parse(text, base=tmp_path)))
    with pytest.raises(InputError, match="batch 0 was begun without it, and is done again") as refused:
        run_alone(bind(parse(other, base=tmp_path)))
    assert refused.value.field == "streams.r.idle"
    run_alone(bind(parse(text, base=tmp_path)))
    arrive(tmp_path, 1)
    run_alone(bind(parse(other, base=tmp_path)))


KINDS_OF_QUERIES = {
    "a cast": "SELECT ONLINE r.id AS r, s.id AS s FROM r, s WHERE CAST(r.k AS DOUBLE) <= s.k + 1 WITHIN 5 SECONDS",
    "as of NULL": "SELECT ONLINE r.id AS r FROM r ASOF JOIN s ON r.k IS NOT DISTINCT FROM s.k AND r.ts >= s.ts",
    "pairs": "SELECT ONLINE r.id AS r, s.id AS s FROM r, s WHERE r.k <= s.k + 1 WITHIN 5 SECONDS",
    "as of": "SELECT ONLINE r.id AS r, s.id AS s FROM r ASOF JOIN s ON r.k = s.k AND r.ts >= s.ts",
    "three": "SELECT ONLINE r.id AS r FROM r JOIN s ON r.k = s.k JOIN r AS t ON s.k = t.k WITHIN 1 SECOND",
    "groups": "SELECT ONLINE r.k, COUNT(*) AS n FROM r, s WHERE r.k = s.k WITHIN 5 SECONDS GROUP BY r.k, "
    "TUMBLE(5 SECONDS)",
    "one stream": "SELECT ONLINE k, COUNT(*) AS n FROM r GROUP BY k, TUMBLE(5 SECONDS)",
    "distinct": "SELECT ONLINE DISTINCT r.k FROM r, s WHERE r.k = s.k WITHIN 5 SECONDS",
}


@pytest.mark.parametrize("kind", KINDS_OF_QUERIES)
def test_a_checkpoint_of_an_earlier_version_goes_on_unless_its_keys_were_others(kind: str, tmp_path: Path) -> None:
    text = TEXT.format(query=KINDS_OF_QUERIES[kind], operator="name: auto")
    arrive(tmp_path, 0)
    run_alone(bind(parse(text, base=tmp_path)))
    record = tmp_path / "checkpoint" / "job.json"
    record.write_text(json.dumps({**json.loads(record.read_text()), "keys": 2}))
    arrive(tmp_path, 1)
    if kind in ("a cast", "as of NULL"):
        with pytest.raises(InputError, match="is from an earlier version of StreamJoin, which had other keys"):
            run_alone(bind(parse(text, base=tmp_path)))
    else:
        run_alone(bind(parse(text, base=tmp_path)))
