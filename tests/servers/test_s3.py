"""States on a real S3 server: busy, cut off, lying, without a bucket, without permission."""

from __future__ import annotations

import posixpath
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from streamjoin.engine.state import UnitState
from streamjoin.errors import InputError
from streamjoin.state.generation import Generation, owner
from streamjoin.state.objectstore import ObjectStates
from streamjoin.state.restored import restore
from streamjoin.state.root import ObjectRoot
from tests.unit.state.test_objects import written

from .s3 import BUCKET, ENVIRONMENT, S3
from .unruly import Fault, Unruly

pytestmark = pytest.mark.services


@pytest.fixture
def unruly(s3: S3) -> Iterator[Unruly]:
    with Unruly(s3.port) as proxy:
        yield proxy


@pytest.mark.parametrize("fault", ["busy", "cut", "late", "short", "flip"])
def test_a_store_that_fails_or_lies_costs_a_retry(fault: Fault, s3: S3, unruly: Unruly, tmp_path: Path) -> None:
    uri = s3.uri(f"{BUCKET}/{tmp_path.name}", unruly.port)
    made = Generation(ObjectRoot(uri, tmp_path / "cache"), _folder(tmp_path / "checkpoint"), 1, 0)
    store = ObjectStates(made.root)
    if fault in ("busy", "cut", "late"):
        unruly.faults = [("PUT", fault)] * 3
    state: UnitState = written(store, segments=3)
    store.settle()
    store.collected()
    unruly.faults = [("GET", fault)]
    fresh = ObjectStates(replace(store.root, cache=tmp_path / "other"))
    assert fresh.load(0, 1) == state
    unruly.faults.append(("GET", fault))
    assert [fresh.open_segment(0, info).num_rows for info in state.named()] == [5, 6, 7]
    assert unruly.met >= 2 and not unruly.faults
    names = sorted(name for name in fresh.objects.listed("0"))
    assert names == sorted(
        [f"0/0/1.{made.head.name}.json", *(posixpath.join("0/0", info.file) for info in state.named())]
    )
    if fault == "flip":  # others are seen by the client, too, which asks again by itself
        assert fresh.objects.traffic.taken()["retries"] == 2


def test_what_is_wrong_with_a_place_is_said_at_the_start(s3: S3, tmp_path: Path) -> None:
    checkpoint = _folder(tmp_path / "checkpoint")
    for uri, said in (
        (s3.uri("no-such-bucket/x"), r"^run\.state: s3://no-such-bucket/x: there is no such bucket"),
        (s3.uri(f"{BUCKET}/x", key="nobody"), r"^run\.state: s3://states/x: the store does not permit it"),
        (s3.uri(f"{BUCKET}/x", secret="wrong"), r"^run\.state: s3://states/x: the store does not permit it"),
    ):
        place = ObjectRoot(uri, tmp_path / "cache")
        with pytest.raises(InputError, match=said):
            _started(place, checkpoint)


def test_a_store_that_does_not_know_newer_clients_says_which_settings_help(
    s3: S3, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ENVIRONMENT:
        if "CHECKSUM" in name:
            monkeypatch.delenv(name)
    place = ObjectRoot(s3.uri(f"{BUCKET}/{tmp_path.name}"), tmp_path / "cache")
    begun_s = time.monotonic()
    with pytest.raises(InputError, match="AWS_REQUEST_CHECKSUM_CALCULATION"):
        _started(place, _folder(tmp_path / "checkpoint"))
    assert time.monotonic() - begun_s < place.retry_s


def test_a_large_segment_comes_back_and_a_generation_follows_another(s3: S3, tmp_path: Path) -> None:
    place = ObjectRoot(s3.uri(f"{BUCKET}/{tmp_path.name}"), tmp_path / "cache")
    first = Generation(place, _folder(tmp_path / "one"), 2, 0)
    content = bytes(range(256)) * (9 << 12)
    first.objects.put("large", content)
    got = first.objects.get("large", len(content))
    assert got is not None and got.to_pybytes() == content
    second = Generation(place, _folder(tmp_path / "two"), 2, 4)
    head = owner(second.objects)
    assert head is not None and head.number == 2 and head.lines == second.root.lines
    assert [name.partition("-")[0] for name, _ in head.lines[1]] == ["g1", "g2"]
    assert [first_version for _, first_version in head.lines[1]] == [1, 5]


def _started(place: ObjectRoot, checkpoint: Path) -> None:
    restore(place, checkpoint)
    Generation(place, checkpoint, 1, 0)


def _folder(path: Path) -> Path:
    path.mkdir()
    return path
