"""Which queries can be started over the tuples that a job stores."""

from __future__ import annotations

from dataclasses import replace

import pyarrow as pa
import pytest

from streamjoin.engine.coverage import all_stored, check_starts
from streamjoin.engine.operator import Operator
from streamjoin.errors import UnsupportedError
from streamjoin.flow.punctuation import StreamClock
from streamjoin.operators.biclique import Biclique
from streamjoin.operators.handshake import Handshake
from streamjoin.plan.join import JoinPlan
from streamjoin.plan.schema import StreamSchema
from streamjoin.plan.sharing import Lasting, SharedJoin
from streamjoin.query import plan_query

COLUMNS = pa.schema(
    [("f", pa.bool_()), ("k", pa.int64()), ("x", pa.int64()), ("y", pa.int64()), ("ts", pa.timestamp("us", tz="UTC"))]
)
STREAMS = {name: StreamSchema(name, COLUMNS, "ts") for name in ("r", "s")}
BICLIQUE = Biclique(2, 2)
BASE = "SELECT ONLINE r.k, r.x, s.k AS sk, s.x AS sx FROM r, s WHERE r.k = s.k AND r.x > 3 WITHIN 10 SECONDS"


def planned(text: str) -> JoinPlan:
    return plan_query(text, STREAMS)


def check(
    text: str, base: str = BASE, operator: Operator = BICLIQUE, stored: tuple[bool, bool] | None = (False, False),
    equalities: tuple[str, ...] = (),
) -> None:  # fmt: skip
    before = planned(base)
    earlier = SharedJoin(("base",), (before,), Lasting(before.names, equalities))
    now = SharedJoin(("base", "new"), (before, planned(text)), earlier.lasting, frozenset({"new"}))
    check_starts(now, earlier, operator, stored)


ASKS = "SELECT ONLINE r.k, s.k AS sk FROM r, s WHERE r.k = s.k AND r.x > 3"


@pytest.mark.parametrize(
    "text",
    [
        f"{ASKS} WITHIN 10 SECONDS",
        f"{ASKS} WITHIN (3 SECONDS, 10 SECONDS)",
        f"{ASKS} AND r.x < 90 AND s.x = 4 WITHIN 1 SECOND",
        f"{ASKS} AND ABS(r.x - s.x) < 3 WITHIN 1 SECOND",
        f"{ASKS} AND r.k IS NOT DISTINCT FROM s.k WITHIN 1 SECOND",
        "SELECT ONLINE b.x FROM r a, s b WHERE 3 < a.x AND a.x > 3 AND b.k = a.k WITHIN 1 SECOND",
    ],
)
def test_who_asks_for_less_can_start(text: str) -> None:
    check(text, equalities=("r.k = s.k",))


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        (f"{ASKS} WITHIN 11 SECONDS", "tuples are stored for within 10 s"),
        (f"{ASKS} WITHIN (3 SECONDS, 11 SECONDS)", "tuples are stored for within 10 s"),
        (ASKS, "this is full history, and tuples are stored for within 10 s"),
        (f"{ASKS} WITHIN 3 ROWS", "windows of rows"),
        (f"{ASKS} AND r.y = 1 WITHIN 1 SECOND", "this reads y of r, and of stored tuples there is k, x"),
        (f"{ASKS} AND s.y = r.x WITHIN 1 SECOND", "this reads y of s"),
        ("SELECT ONLINE r.k FROM r, s WHERE r.k = s.k WITHIN 1 SECOND", "may ask for tuples of r that no query so far"),
        ("SELECT ONLINE r.k FROM r, s WHERE r.k = s.k AND r.x > 2 WITHIN 1 SECOND", "may ask for tuples of r"),
        ("SELECT ONLINE r.k FROM r, s WHERE r.x = s.x AND r.x > 3 WITHIN 1 SECOND", "may ask for tuples of r"),
        (
            "SELECT ONLINE r.k FROM r, s WHERE r.k IS NOT DISTINCT FROM s.k AND r.x > 3 WITHIN 1 SECOND",
            "may ask for tuples of r",
        ),
    ],
)
def test_who_asks_for_what_was_not_kept_cannot(text: str, reason: str) -> None:
    with pytest.raises(UnsupportedError) as refusal:
        check(text)
    assert reason in refusal.value.message and refusal.value.field == "queries.new.query"
    if "windows of rows" not in reason:
        assert "a job of its own" in refusal.value.message


def test_what_must_be_true_is_more_than_what_must_be_there() -> None:
    base = "SELECT ONLINE r.f, s.f AS sf FROM r, s WHERE r.f AND s.f WITHIN 10 SECONDS"
    with pytest.raises(UnsupportedError, match="may ask for tuples of r"):
        check("SELECT ONLINE r.f FROM r, s WHERE r.f = s.f WITHIN 1 SECOND", base=base)
    check("SELECT ONLINE r.f FROM r, s WHERE r.f = s.f AND r.f AND s.f WITHIN 1 SECOND", base=base)
    with pytest.raises(UnsupportedError, match="may ask for tuples of r"):
        check(
            "SELECT ONLINE r.f FROM r, s WHERE r.f AND s.f WITHIN 1 SECOND",
            base=base.replace("r.f AND s.f", "r.f = s.f"),
        )


def test_before_the_first_tuple_anything_can_start() -> None:
    check(ASKS, stored=None)
    assert all_stored((True, True), (StreamClock(), StreamClock())) is None
    with pytest.raises(UnsupportedError, match="routes its tuples by"):
        check("SELECT ONLINE r.k FROM r, s WHERE r.x = s.x", stored=None, equalities=("r.k = s.k",))


def test_where_nothing_was_left_out_selections_do_not_matter() -> None:
    text = "SELECT ONLINE r.k FROM r, s WHERE ABS(r.x - s.x) < 2 WITHIN 1 SECOND"
    check(text, stored=(True, True))
    for stored, name in (((False, True), "r"), ((True, False), "s")):
        with pytest.raises(UnsupportedError, match=f"tuples of {name} "):
            check(text, stored=stored)


def test_a_tuple_lies_where_its_key_sent_it() -> None:
    text = "SELECT ONLINE r.k FROM r, s WHERE ABS(r.x - s.x) < 2 WITHIN 1 SECOND"
    with pytest.raises(UnsupportedError, match=r"routes its tuples by r\.k = s\.k"):
        check(text, stored=(True, True), equalities=("r.k = s.k",))


def test_a_chain_keeps_what_keys_are_computed_from() -> None:
    """Its tuples probe again in each worker, so there are more columns than results read."""
    base = "SELECT ONLINE s.x FROM r, s WHERE r.k = s.k AND ABS(r.x - s.x) < 9 WITHIN 10 SECONDS"
    text = "SELECT ONLINE s.x FROM r, s WHERE r.k = s.k WITHIN 1 SECOND"
    with pytest.raises(UnsupportedError, match="of stored tuples there is no column"):
        check(text, base=base, stored=(True, True))
    check(text, base=base, stored=(True, True), operator=Handshake(2))


def test_windows_of_rows() -> None:
    base = BASE.replace("10 SECONDS", "10 ROWS")
    check(f"{ASKS} WITHIN 10 ROWS", base=base)
    with pytest.raises(UnsupportedError, match="stored for within 10 rows"):
        check(f"{ASKS} WITHIN 11 ROWS", base=base)


def test_full_history_has_all_windows() -> None:
    check(f"{ASKS} WITHIN 100 DAYS", base=BASE.replace(" WITHIN 10 SECONDS", ""))
    check(ASKS, base=BASE.replace(" WITHIN 10 SECONDS", ""))


def test_what_is_stored_follows_from_the_clocks_and_from_what_stops_let_go() -> None:
    whole, left_out = StreamClock(10, routed=7, shed=3), StreamClock(10, routed=9)
    assert all_stored((True, True), None) is None
    assert all_stored((True, True), (whole, left_out)) == (True, False)
    assert all_stored((False, True), (whole, whole)) == (False, True)


def test_queries_that_were_started_take_a_bit_more() -> None:
    plan = planned(BASE)
    names = tuple(f"q{number}" for number in range(40))
    shared = SharedJoin(names, (plan,) * 40, started=frozenset(names[:24]))
    assert (
        shared.bits == 64
        and shared.before_bit(0) == 40
        and shared.before_bit(23) == 63
        and shared.before_bit(24) is None
    )
    with pytest.raises(Exception, match="64 bits, one for each query and one more for each that was started later"):
        replace(shared, started=frozenset(names[:25]))
