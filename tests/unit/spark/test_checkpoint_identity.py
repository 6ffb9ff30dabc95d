"""What must not change while a checkpoint is used."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from streamjoin.errors import InputError, StateError, UnsupportedError
from streamjoin.plan.sharing import key_text
from streamjoin.spark.checkpoint import KEYS, brought, opened
from streamjoin.spark.identity import check_continues, identity, operators_differ
from streamjoin.spark.requerying import requery
from streamjoin.spec.job import IDENTITY_FILE, Job, recorded
from streamjoin.spec.joinfile import JoinFile, parse
from streamjoin.spec.prepare import Bound, bind
from streamjoin.state.generation import Generation
from tests.servers.objects import folder_root

FILE = """
streams:
  a: {source: generator, kind: band.r, time: ts}
  b: {source: generator, kind: band.s, time: ts}
queries:
  near: {query: "SELECT ONLINE a.x FROM a, b WHERE ABS(a.x - b.a) < 5 WITHIN 1 SECOND", results: NEAR}
  same: {query: "SELECT ONLINE a.x FROM a, b WHERE a.x = b.a WITHIN 1 SECOND", results: SAME}
"""
STORE, FOLDER = "{store: sqlite, path: results.db}", "{parquet: pairs}"


def of(folder: Path, text: str = FILE, near: str = STORE, same: str = FOLDER) -> dict[str, Any]:
    return identity(bind(parse(text.replace("NEAR", near).replace("SAME", same), base=folder)).job())


@pytest.mark.parametrize(
    ("before", "after"),
    [("near:", "close:"), ("< 5", "< 6"), ("a.x = b.a WITHIN 1", "a.x = b.a WITHIN 2"), ("  same:", "  # same:")],
)
def test_the_queries_of_a_job_may_change(before: str, after: str, tmp_path: Path) -> None:
    """What becomes of one that is another is said where the join file is bound."""
    assert of(tmp_path) == of(tmp_path, FILE.replace(before, after))


def test_the_only_query_of_a_job_may_get_company_and_may_not_change(tmp_path: Path) -> None:
    streams, _, _ = FILE.partition("queries:")
    one = 'query: "SELECT ONLINE a.x, b.a FROM a, b WHERE a.x = b.a WITHIN 1 SECOND"'
    same = one.replace(" FROM", "  FROM").replace("query", "{query")
    more = """near: {query: "SELECT ONLINE a.x FROM a, b WHERE a.x = b.a AND ABS(a.x - b.a) < 2 WITHIN 1 SECOND"}"""

    def bound(text: str) -> Bound:
        return bind(parse(streams + text, base=tmp_path))

    with opened(bound(one).job()):
        pass
    with opened(bound(one.replace(" FROM", "  FROM")).job()) as held:
        assert not held.requeries_for(bound(one).job())
    with pytest.raises(InputError, match="with other query"), opened(bound(one.replace("1 SEC", "2 SEC")).job()):
        pass
    with pytest.raises(InputError, match="none of these is the same; keep it among them"):
        bound(f"queries:\n  {more}")
    together = bound(f"queries:\n  {more}\n  first: {same}}}")
    assert together.earlier is not None and together.earlier.names_of_queries == ("first",)
    assert together.plan.started == {"near"}
    with opened(together.job()) as held:
        assert held.requeries_for(together.job())
        requery(held, together.job())
    with pytest.raises(InputError, match="with other query"), opened(bound(one).job()):
        pass
    assert bound(f"queries:\n  {more}\n  first: {same}}}").earlier is None


def test_rows_that_end_their_key_are_of_the_state_where_they_are_joined_as_of(tmp_path: Path) -> None:
    streams, _, _ = FILE.partition("queries:")
    ending = streams.replace("kind: band.s, time: ts", "kind: band.s, time: ts, key: [a], deletes: true")
    asof = 'query: "SELECT ONLINE a.x FROM a ASOF JOIN b ON a.x = b.a AND a.ts >= b.ts"'
    pairs = 'query: "SELECT ONLINE a.x FROM a, b WHERE a.x = b.a WITHIN 1 SECOND"'
    assert of(tmp_path, streams + asof) != of(tmp_path, ending + asof)
    assert of(tmp_path, streams + pairs) == of(tmp_path, ending + pairs)


def test_what_a_checkpoint_was_used_for_goes_on(tmp_path: Path) -> None:
    def bound(text: str, near: str = STORE, same: str = FOLDER) -> Bound:
        return bind(parse(text.replace("NEAR", near).replace("SAME", same), base=tmp_path))

    # Routed by hash of an equality that has gone from one query since: that of the first start holds.
    text = FILE.replace("a.x - b.a) < 5", "a.x - b.a) < 5 AND a.x = b.a AND a.y = b.b").replace(
        "a.x = b.a WITHIN", "a.x = b.a AND a.y = b.b AND a.x < 9 WITHIN"
    )
    first = bound(text).job()
    with opened(first):
        found = recorded(first.checkpoint)
    assert found is not None
    x, y = found.lasting.equalities
    assert "a.x" in x and "a.y" in y
    assert bound(text, same="{jsonl: pairs.jsonl}").earlier is None
    with pytest.raises(InputError, match=r"queries\.same\.results: the results of this query were in no store"):
        bound(text, same="{store: sqlite, path: other.db}")
    with pytest.raises(InputError, match="are all stopped"):
        bound(text.replace("results: ", "stopped: true, results: "))
    swapped = text.replace("b.a AND a.y = b.b AND a.x < 9", "b.a AND a.x < 9")
    with pytest.raises(InputError, match="same is the name of another query"):
        bound(swapped)
    with pytest.raises(UnsupportedError, match=r"the job routes its tuples by .*a\.y.* = .*b\.b") as refusal:
        bound(swapped.replace("same:", "new:").replace("SAME", "{discard: true}") + text[text.index("  same:") :])
    assert refusal.value.field == "queries.new.query"

    # With one query left there are more equalities in common, and in another order; tuples go where they went.
    alone_text = (
        text.replace("  same: {", "  same: {stopped: true, ")
        + """\
  new: {query: "SELECT ONLINE b.a FROM a, b WHERE a.y = b.b AND a.x = b.a AND a.x < 9 AND a.x = b.b WITHIN 1 SECOND"}
"""
    )
    alone = bound(alone_text)
    assert alone.earlier is not None and alone.earlier.names_of_queries == ("near", "same")
    assert [key_text(equality) for equality in alone.plan.predicate.equalities] == [x, y]
    job = alone.job()
    with opened(job) as held:
        assert held.requeries_for(job) and not held.resizes_for(job)
        requery(held, job)
        assert not held.requeries_for(job)
    now, gone = alone_text.partition("queries:\n")[::2]
    near, same, new = gone.splitlines()[:3]
    assert bound("\n".join([now + "queries:", new, near])).earlier is None, "another order is no change"
    many = [same.replace("same:", f"s{number}:").replace("SAME", "{discard: true}") for number in range(70)]
    assert bound("\n".join([now + "queries:", new, near, *many])).earlier is None, "who is stopped counts for nothing"
    other = near + "\n" + new + "\n" + same.replace("stopped: true, ", "").replace("< 9", "< 8")
    with pytest.raises(InputError, match="same is the name of another query in this checkpoint"):
        bound(f"{now}queries:\n{other}")
    again = parse(f"{now}queries:\n{other}".replace("NEAR", STORE).replace("SAME", FOLDER), base=tmp_path)
    assert bind(again, anew=True).earlier is None
    with pytest.raises(InputError, match="have changed since the join file was read"), opened(first):
        pass


@pytest.mark.parametrize(
    ("condition", "goes_on"),
    [
        ("a.x = b.a", True),
        ("ABS(a.y - b.b) <= 0.5", True),
        ("a.x >= b.a - 0.5", False),
        ("ABS(CAST(a.y AS DECIMAL(12, 2)) - CAST(b.b AS DECIMAL(12, 2))) <= 1", False),
        ("CAST(a.y AS DECIMAL(12, 2)) = CAST(b.b AS DECIMAL(12, 2))", True),
        ("CAST(a.y AS DECIMAL(38, 2)) = CAST(b.b AS DECIMAL(38, 2))", False),
    ],
)
def test_a_checkpoint_of_other_keys_is_refused_where_the_query_has_any(
    condition: str, goes_on: bool, tmp_path: Path
) -> None:
    streams, _, _ = FILE.partition("queries:")
    job = bind(parse(f'{streams}query: "SELECT ONLINE a.x FROM a, b WHERE {condition}"', base=tmp_path)).job()
    with opened(job):
        pass
    path = job.checkpoint / "job.json"
    known = json.loads(path.read_text())
    assert known.pop("keys") == KEYS
    path.write_text(json.dumps(known))
    if goes_on:
        with opened(job):
            pass
    else:
        with pytest.raises(InputError, match="had other keys for this query"), opened(job):
            pass


def test_a_checkpoint_from_before_there_were_stages_goes_on(tmp_path: Path) -> None:
    """It says how many units there are as one number."""
    streams, _, _ = FILE.partition("queries:")
    text = streams + 'query: "SELECT ONLINE a.x FROM a, b WHERE a.x = b.a WITHIN 1 SECOND"'
    job = bind(parse(text, base=tmp_path)).job()
    with opened(job) as held:
        (units,) = held.units
    path = job.checkpoint / IDENTITY_FILE
    path.write_text(json.dumps({**json.loads(path.read_text()), "units": units}))
    with opened(job) as held:
        assert held.units == (units,) and not held.resizes_for(job)


@pytest.mark.parametrize("other", ["[a, [b, c]]", "[[a, c], b]"])
def test_another_tree_is_another_join(other: str, tmp_path: Path) -> None:
    text = """
streams:
  a: {source: generator, kind: band.r, time: ts}
  b: {source: generator, kind: band.s, time: ts}
  c: {source: generator, kind: band.s, time: ts}
query: "SELECT ONLINE a.x FROM a, b, c WHERE a.x = b.a AND b.a = c.a AND a.x = c.a WITHIN 1 SECOND"
operator: {name: biclique, tree: TREE}
"""

    def job(tree: str) -> Job:
        return bind(parse(text.replace("TREE", tree), base=tmp_path)).job()

    with opened(job("[[a, b], c]")):
        pass
    with opened(job("'((a, b), c)'")):
        pass
    with pytest.raises(InputError, match="belongs to another join, with other tree"), opened(job(other)):
        pass


@pytest.mark.parametrize(
    ("same", "refused"),
    [("{parquet: pairs}", False), ("{jsonl: '-'}", False), ("{jsonl: rows.jsonl}", True), ("relations", True)],
)
def test_a_job_not_all_of_which_is_beside_its_states_stays_in_its_folder(
    same: str, refused: bool, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    place = folder_root(tmp_path / "store")
    monkeypatch.setattr(JoinFile, "states", property(lambda file: place))
    text = FILE.replace("NEAR", STORE).replace("SAME", FOLDER if same == "relations" else same)
    text += "relations:\n  t: {source: csv, path: t.csv, schema: {x: int64}}\n" if same == "relations" else ""

    def file(checkpoint: str) -> JoinFile:
        return parse(f"{text}run: {{checkpoint: {checkpoint}}}\n", base=tmp_path)

    brought(file("one"))
    Generation(place, tmp_path / "one", 1, 0)
    brought(file("one"))
    if refused:
        with pytest.raises(
            InputError, match=r"^run\.checkpoint: the job at .*, and the \w+ of .* are in that one alone"
        ):
            brought(file("two"))
    else:
        brought(file("two"))


@pytest.mark.parametrize(
    ("was", "now", "words"),
    [
        ("ring ((2, 1), (0, 2)) [], 2 nodes at first, adaptive | Aggregate(units=2)",
         "ring ((2, 1), (0, 2)) [], 3 nodes at first, adaptive | Aggregate(units=2)",
         "the checkpoint began with 2 nodes, and this says 3"),
        ("ring ((2, 1),) []", "ring ((2, 1),) [], 2 nodes at first, adaptive",
         "the checkpoint began with a fixed number of units, and this says units that come and go (adaptive)"),
        ("Biclique(r_units=2, s_units=2, routing=<Routing.HASH: 'hash'>, bounds=None)",
         "Biclique(r_units=2, s_units=3, routing=<Routing.RANDOM: 'random'>, bounds=None)",
         "the checkpoint began with s_units 2, and this says 3; the checkpoint began with routing hash, and this says "
         "random"),
        ("Biclique(r_units=2) | Biclique(r_units=2)", "Biclique(r_units=4) | Biclique(r_units=4)",
         "the checkpoint began with r_units 2, and this says 4"),
        ("handshake", "splitjoin", "the checkpoint began with handshake, and this says splitjoin"),
        ("handshake | lookup", "handshake", "the checkpoint began with more stages than this has"),
        ("ring ((2, 1),) []", "ring ((1, 2),) []",
         "the checkpoint began with ring ((2, 1),) [], and this says ring ((1, 2),) []"),
    ],
)  # fmt: skip
def test_how_operators_differ_is_said_in_words(was: str, now: str, words: str) -> None:
    assert operators_differ(was, now) == words


DIFFERENT = """
streams:
  a: {source: csv, path: a, time: ts, schema: {ts: int64, k: int64, "a: b": string}}
  b: {source: csv, path: b, time: ts, schema: {ts: int64, k: int64}}
query: "SELECT ONLINE a.k FROM a, b WHERE a.k = b.k AND a.ts > b.k WITHIN 1 SECOND"
operator: {name: biclique}
"""


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        ("a, time: ts, schema", "a, time: ts, delay: 2s, schema",
         "with other streams (delay of stream a was not there and is 2 s now)"),
        ("b, time: ts", "b, time: k", "with other streams (time of stream b was ts and is k now)"),
        ("k: int64, \"a: b\": string", "k: int32, \"a: b\": int8, c: date",
         "with other streams (column \"k\" of stream a was int64 and is int32 now; "
         "column \"a: b\" of stream a was string and is int8 now; "
         "column \"c\" of stream a was not there and is date32[day] now)"),
        ("k: int64, \"a: b\": string", "\"a: b\": string, k: int64",
         "with other streams (columns of stream a come in another order now)"),
        ("k: int64}", "k: int32, d: int8}", "column \"d\" of stream b was not there"),
        ("k: int64, \"a: b\": string", "k: int32, c: int8, d: int8, e: int8", "; and 2 more)"),
        ("name: biclique", "name: biclique, index: tree", "with other index (index was "),
        ("a.ts > b.k", "a.ts > b.k + 1",
         "with other query (query was ...HERE a.k = b.k AND a.ts > b.k WITHIN 1 SECOND "
         "and is ...HERE a.k = b.k AND a.ts > b.k + 1 WITHIN 1 SECOND now)"),
    ],
)  # fmt: skip
def test_what_differs_from_the_join_of_a_checkpoint_is_named(old: str, new: str, words: str, tmp_path: Path) -> None:
    for folder in "ab":
        (tmp_path / folder).mkdir()

    def job(text: str) -> Job:
        return bind(parse(text, base=tmp_path)).job()

    with opened(job(DIFFERENT)):
        pass
    with pytest.raises(InputError, match=re.escape(words)), opened(job(DIFFERENT.replace(old, new))):
        pass


RING = """
streams:
  a: {source: generator, kind: band.r, time: ts}
  b: {source: generator, kind: band.s, time: ts}
  c: {source: generator, kind: band.s, time: ts}
query: "SELECT ONLINE a.x FROM a, b, c WHERE a.x = b.a AND b.a = c.a WITHIN 1 SECOND"
operator: {name: ring, adaptive: true, nodes: NODES}
"""


def test_a_look_at_a_checkpoint_refuses_what_a_start_refuses_and_changes_nothing(tmp_path: Path) -> None:
    def job(nodes: int) -> Job:
        return bind(parse(RING.replace("NODES", str(nodes)), base=tmp_path)).job()

    check_continues(job(3))
    assert not list(tmp_path.iterdir()), "nothing has begun"
    with opened(job(2)):
        pass
    before = (job(2).checkpoint / IDENTITY_FILE).read_bytes()
    check_continues(job(2))
    said = r"with other operator \(the checkpoint began with 2 nodes, and this says 3\); use another run.checkpoint"
    for start in (lambda: check_continues(job(3)), lambda: opened(job(3)).__enter__()):
        with pytest.raises(InputError, match=said):
            start()
    assert (job(2).checkpoint / IDENTITY_FILE).read_bytes() == before
    (job(2).checkpoint / IDENTITY_FILE).write_text("{")
    with pytest.raises(StateError, match="is damaged"):
        check_continues(job(2))
