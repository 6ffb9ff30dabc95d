"""Somebody new: a platform with its default settings, two files of their own, and the rows that they make together."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from streamjoin.errors import InputError
from streamjoin.spark.java import find_java
from tests.servers.process import comes_true

from .browser import MAKE_UP, TEST_S_MAX, UP_S_MAX, platform, walk

pytestmark = [pytest.mark.services, pytest.mark.slow, pytest.mark.alone]

NEWCOMER_S_MAX = 180.0
"""From `up` to the rejected row."""
CUSTOMERS = ("ada", "bob", "cyd", "dee", "eve")


@pytest.mark.timeout(TEST_S_MAX)
@pytest.mark.spark
def test_a_newcomer_joins_two_files_in_three_minutes_and_meets_no_error(
    tmp_path: Path, browser: tuple[str, str], record_property: Callable[[str, object], None]
) -> None:
    try:
        find_java()
    except InputError as reason:
        pytest.skip(str(reason))
    files = tmp_path / "pictures"
    files.mkdir()
    write_files(files)
    begun_s = time.monotonic()
    with platform(tmp_path, MAKE_UP) as address:
        log = tmp_path / "platform.log"
        assert comes_true(lambda: "streamjoin is up" in log.read_text(), UP_S_MAX), log.read_text()
        up_s = time.monotonic() - begun_s
        seconds = {"up": round(up_s, 1), **walk("newcomer", browser, address, str(files))}
        took_s = time.monotonic() - begun_s
    record_property("seconds", json.dumps(seconds))
    print(json.dumps(seconds), f"{took_s:.1f} s in all")
    assert set(seconds) == {
        "up",
        "opening",
        "registerOrders",
        "registerPayments",
        "newJoin",
        "create",
        "rows",
        "rejected",
    }
    assert took_s < NEWCOMER_S_MAX, seconds


def write_files(folder: Path) -> None:
    """Orders, of which one is broken, and what paid for them."""
    orders, payments = ["id,customer,amount,at"], ["order_id,method,at"]
    for number in range(1, 41):
        minute = f"2026-01-05T09:{number:02}"
        customer = CUSTOMERS[number % len(CUSTOMERS) - 1]
        orders.append("3,cyd" if number == 3 else f"{number},{customer},{number * 7 % 90 + 0.5},{minute}:00Z")
        payments.append(f"{number},{'card' if number % 3 else 'transfer'},{minute}:20Z")
    (folder / "orders.csv").write_text("\n".join(orders) + "\n")
    (folder / "payments.csv").write_text("\n".join(payments) + "\n")
