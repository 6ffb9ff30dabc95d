"""The worked example of ASOF JOIN in the documents gives what stands there."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pyarrow as pa

from streamjoin.engine.loop import Brought, Loop
from streamjoin.explain.plans import explain, summary
from streamjoin.explain.preview import preview
from streamjoin.operators import registry
from streamjoin.plan.schema import StreamSchema
from streamjoin.query import plan_query
from streamjoin.spec.joinfile import parse
from streamjoin.spec.prepare import bind
from streamjoin.state.store import StateStore

PAGE = Path(__file__).resolve().parents[2] / "docs" / "query-language.md"
TIME = pa.timestamp("us", tz="UTC")


def test_each_trade_has_the_quote_of_the_table(tmp_path: Path) -> None:
    page = PAGE.read_text()
    query = re.findall(r"```sql\n(SELECT ONLINE t\.id, [^`]*ASOF LEFT JOIN[^`]*)```", page)[0]
    lines = page.split("<!-- as-of example -->\n```\n")[1].split("```")[0].splitlines()[1:]
    cells = [line.split() for line in lines]
    trades = [{"ts": c[0], "id": int(c[1]), "sym": c[2], "shares": int(c[3])} for c in cells]
    quotes = [{"ts": c[4], "sym": c[5], "bid": float(c[6])} for c in cells]
    wanted = [(int(c[7]), c[8], int(c[9]), None if c[10] == "NULL" else float(c[10])) for c in cells]
    kinds = {"ts": TIME, "id": pa.int64(), "sym": pa.string(), "shares": pa.int64(), "bid": pa.float64()}
    given, schemas = [], {}
    for name, rows in (("trades", trades), ("quotes", quotes)):
        columns = {field: [row[field] for row in rows] for field in rows[0]}
        arrays = [pa.array(values).cast(kinds[field]) for field, values in columns.items()]
        given.append([pa.RecordBatch.from_arrays(arrays, list(columns))])
        schemas[name] = StreamSchema(name, given[-1][0].schema, "ts")
    plan = plan_query(query, schemas)
    loop = Loop(plan, registry.build_all("auto", {}, plan, 2), lambda stage: StateStore(tmp_path, stage, sync=False), 2)
    found = []
    for number, pieces in enumerate([given, [[], []]]):
        brought = Brought(pieces, number, drains=number == 1)
        for _, part in loop.batch(brought):
            found += zip(*(column.to_pylist() for column in part.columns), strict=True)
        loop.commit(brought)
    assert sorted(found) == wanted and len(wanted) == 5


def test_each_bid_has_the_member_of_the_table(tmp_path: Path) -> None:
    page = PAGE.read_text().split("<!-- example of deletes -->")[1]
    (file,) = re.findall(r"```yaml\n([^`]*)```", page)[:1]
    lines = page.split("\n```\nbids")[1].split("```")[0].splitlines()[1:]
    cells = [[None if cell == "NULL" else cell for cell in line.split()] for line in lines]
    bids = [{"ts": c[0], "n": int(c[1]), "member": int(c[2])} for c in cells]
    members = [{"ts": c[3], "id": int(c[4]), "name": c[5], "level": c[6]} for c in cells]
    wanted = [(int(c[7]), int(c[8]), c[9], c[10]) for c in cells]
    for name, rows in (("bids", bids), ("members", members)):
        (tmp_path / name).mkdir()
        (tmp_path / name / "1.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    bound = bind(parse(f"{file}results: {{discard: true}}\n", base=tmp_path))
    found = preview(bound).queries[0].rows
    assert sorted(zip(*(column.to_pylist() for column in found.columns), strict=True)) == wanted and len(wanted) == 6
    ends = (
        "ends        a row of members with nothing but id and ts ends that key: rows of bids after it get none, until "
    )
    assert f"{ends}members has another of the key" in str(explain(bound))


def test_the_query_beside_other_joins_is_explained_and_looked_at(tmp_path: Path) -> None:
    page = PAGE.read_text().split("### Beside other joins")[1]
    query = re.findall(r"```sql\n(SELECT ONLINE t\.id, [^`]*ASOF LEFT JOIN[^`]*)```", page)[0]
    minute = "2026-01-05T09:30:"
    rows = {
        "trades": [{"ts": f"{minute}01Z", "id": 1, "sym": "ABC"}, {"ts": f"{minute}05Z", "id": 2, "sym": "XYZ"}],
        "quotes": [
            {"ts": f"{minute}00Z", "sym": "ABC", "bid": 10.5},
            {"ts": f"{minute}02Z", "sym": "ABC", "bid": 11.5},
        ],
        "news": [
            {"ts": f"{minute}04Z", "sym": "ABC", "text": "up"},
            {"ts": f"{minute}06Z", "sym": "XYZ", "text": "down"},
        ],
    }
    streams = []
    for name, of in rows.items():
        (tmp_path / name).mkdir()
        (tmp_path / name / "1.jsonl").write_text("".join(json.dumps(row) + "\n" for row in of))
        streams.append(f"  {name}: {{source: jsonl, path: {name}, time: ts}}\n")
    file = (
        f"streams:\n{''.join(streams)}query: |\n  {query.strip().replace(chr(10), ' ')}\nresults: {{discard: true}}\n"
    )
    bound = bind(parse(file, base=tmp_path))
    found = preview(bound).queries[0].rows
    assert sorted(found.to_pylist(), key=lambda row: row["id"]) == [
        {"id": 1, "bid": 10.5, "text": "up"},
        {"id": 2, "bid": None, "text": "down"},
    ]
    explained = explain(bound)
    said = str(explained)
    for line in (
        "stage 1     t ASOF LEFT JOIN q, 2 units, by equal keys",
        "gives       each row of t with the latest row of q that is not newer, and at most 1 h older, or with none",
        "keys        (t.sym = q.sym)",
        "wait        rows of t wait until the watermark of q has passed them",
        "stage 2     stage 1 with n, ",
        "operator    asof and biclique, by stage",
    ):
        assert line in said, said
    assert [stage["kind"] for stage in explained.to_json()["stages"]] == ["ASOF LEFT", "INNER"]
    assert summary(bound).startswith("t ASOF LEFT JOIN q JOIN n within 10 s for t, 1 h for q, 1 min for n, by biclique")
