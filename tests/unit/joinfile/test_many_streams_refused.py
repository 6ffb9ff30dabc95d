"""What a join of many streams refuses in a join file, with the place that is wrong."""

from __future__ import annotations

from pathlib import Path

import pytest

from streamjoin.errors import StreamJoinError
from streamjoin.spec.joinfile import parse
from streamjoin.spec.prepare import bind

STREAM = "{source: csv, path: rows.csv, time: ts, time_unit: us, schema: {ts: int64, id: int64, k: int64}}"
FROM_THREE = "FROM a, b, c WHERE a.k = b.k AND b.k = c.k"


@pytest.mark.parametrize(
    ("names", "text", "place", "said"),
    [
        ("abcdefghij", "FROM a, b, c, d, e, f, g, h, i, j WITHIN 1 SECONDS", "line 1, column 57", "9 streams at most"),
        ("ab", "FROM a, b, a WITHIN 1 SECONDS", "line 1, column 36", 'calls the same stream "a"; give each its own'),
        ("abc", f"{FROM_THREE} WITHIN 1 SECONDS FOR z, 2 SECONDS FOR a", "line 1, column 89", 'no stream "z"'),
        ("abc", f"{FROM_THREE} WITHIN 1 SECONDS FOR a, 2 SECONDS FOR b", "line 1, column 68", "c has no reach"),
    ],
)
def test_a_wrong_query_is_refused_where_it_is_wrong(
    names: str, text: str, place: str, said: str, tmp_path: Path
) -> None:
    message, _ = refusal(tmp_path, names, text, "{name: ring}")
    assert place in message and said in message, message


@pytest.mark.parametrize(
    ("operator", "field", "said"),
    [
        ("{name: biclique, tree: [a, b]}", "operator.tree", "it lacks c"),
        ("{name: biclique, tree: [[a, b], a]}", "operator.tree", "a is in it twice"),
        ("{name: biclique, tree: [[a, b], z]}", "operator.tree", "no stream z; it reads a, b, c"),
        ("{name: biclique, tree: [a]}", "operator.tree", "this is not a tree of joins; write two streams"),
        ("{name: ring, tree: [[a, b], c]}", "operator.tree", "write orders, or leave it out"),
        ("{name: ring, orders: {a: [b, b]}}", "operator.orders.a", "each other stream once, such as [b, c]"),
        ("{name: ring, orders: {a: [b]}}", "operator.orders.a", "each other stream once, such as [b, c]"),
        ("{name: ring, orders: {z: [b, c]}}", "operator.orders.z", "no stream z; it reads a, b, c"),
        ("{name: ring, orders: {a: b}}", "operator.orders", "the order for a must be a list of streams, not"),
        ("{name: ring, orders: 7}", "operator.orders", "7 says nothing of streams"),
        ("{name: ring, lengths: {z: 1}}", "operator.lengths.z", "no stream z; it reads a, b, c"),
        ("{name: ring, lengths: {a: 1, b: 0}}", "operator.lengths", "for b: 0 is not a whole number from 1"),
        ("{name: ring, nodes: 2, lengths: {a: 3}}", "operator.lengths.a", "from 1 to 2, which the ring has"),
        ("{name: aligned, master: z}", "operator.master", "no stream z; it reads a, b, c"),
        ("{name: ring, master: a}", "operator.master", "ring has no such knob"),
    ],
)
def test_a_wrong_knob_is_refused_at_its_field(operator: str, field: str, said: str, tmp_path: Path) -> None:
    message, found = refusal(tmp_path, "abc", f"{FROM_THREE} WITHIN 1 SECONDS", operator)
    assert (found, message.startswith(f"{field}: ")) == (field, True) and said in message, (found, message)


def test_a_ring_over_all_of_history_is_refused_with_what_does_it(tmp_path: Path) -> None:
    message, field = refusal(tmp_path, "abc", FROM_THREE, "{name: ring}")
    assert field == "operator.name" and "add WITHIN, such as WITHIN 10 MINUTES, or choose biclique" in message


def refusal(folder: Path, names: str, text: str, operator: str) -> tuple[str, str | None]:
    """The sentence, and the field it is of."""
    (folder / "rows.csv").write_text("ts,id,k\n1,1,1\n")
    streams = "".join(f"  {name}: {STREAM}\n" for name in names)
    content = (
        f"streams:\n{streams}query: SELECT ONLINE a.id AS i {text}\noperator: {operator}\n"
        "results: {parquet: out}\nrun: {checkpoint: state}\n"
    )
    with pytest.raises(StreamJoinError) as found:
        bind(parse(content, base=folder))
    return str(found.value), getattr(found.value, "field", None)
