"""What a driver keeps in Redis: never a gap, never less than another driver showed, and never in the job's way."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from backend.catalog.database import Catalog
from backend.catalog.models import Job
from backend.results import memory
from backend.results.memory import memory_spec
from backend.settings import Settings
from streamjoin.errors import InputError
from streamjoin.results.reader import Reader
from streamjoin.results.snapshot import SnapshotId
from streamjoin.results.stores.redis import RedisStore
from tests.backend.results_job import Committer, add_job, settings_in
from tests.catalogs import migrated
from tests.servers.process import comes_true
from tests.servers.redis import RedisServer

pytestmark = pytest.mark.services


@pytest.fixture
def redis() -> Iterator[RedisServer]:
    with RedisServer() as server:
        yield server


@pytest.fixture
def settings(tmp_path: Path, redis: RedisServer) -> Settings:
    return settings_in(tmp_path, redis_url=redis.url)


@pytest.fixture
def job(settings: Settings) -> Job:
    migrated(settings)
    catalog = Catalog(settings.catalog)
    job = add_job(catalog)
    catalog.close()
    return job


def shown(settings: Settings, job: Job) -> tuple[str, list[str]] | None:
    """The memory's floor, and the snapshots in it; blocks that are not there are a mistake."""
    store = memory_spec(settings, reading=True).open()
    assert isinstance(store, RedisStore)
    reader = Reader(store, job.id)
    try:
        head = reader.refresh()
        for found in reader.snapshots():
            assert sum(batch.num_rows for _, batch in reader.rows(found.blocks)) == found.rows
    except InputError:  # there is no such job, or it was forgotten just now
        return None
    store.close()
    return str(head.floor), [str(found.id) for found in reader.snapshots()]


def test_the_memory_has_what_was_committed_since_the_driver_began(settings: Settings, job: Job) -> None:
    one = Committer(settings, job, memory=True)
    assert shown(settings, job) == ("0.-1", [])
    ids = [one.commit() for _ in range(3)]
    assert shown(settings, job) == ("0.-1", ids)
    two = Committer(settings, job, memory=True)
    assert shown(settings, job) == (ids[-1], [])
    last = two.commit()
    assert shown(settings, job) == (ids[-1], [last])
    one.close()
    two.close()


def test_the_memory_is_bounded_and_its_floor_says_from_where(
    settings: Settings, job: Job, monkeypatch: pytest.MonkeyPatch
) -> None:
    committer = Committer(settings, job, memory=True)
    assert committer.recent is not None
    committer.recent.bytes_max = 100_000
    ids = [committer.commit(500) for _ in range(20)]
    found = shown(settings, job)
    assert found is not None and 1 < len(found[1]) < 20
    assert [found[0], *found[1]] == ids[-len(found[1]) - 1 :]
    store = RedisStore(settings.redis_url)
    assert sum(len(content) for _, content in store.get_blocks(job.id, list(store.list_blocks(job.id)))) <= 100_000
    committer.close()


def test_a_driver_that_was_replaced_does_not_take_the_memory_back(settings: Settings, job: Job) -> None:
    old = Committer(settings, job, memory=True)
    old.commit()
    zombie = old.recent
    assert zombie is not None
    snapshot, head = _newest(old), old.sink.ledger.head
    new = Committer(settings, job, memory=True)
    id = new.commit()
    before = shown(settings, job)
    zombie._from = SnapshotId(0, -1)
    zombie.publish(snapshot, head, lambda keys: [])  # it was in the middle of this when it was replaced
    assert shown(settings, job) == before and before is not None and before[1] == [id]
    old.close()
    new.close()


def _newest(committer: Committer):  # type: ignore[no-untyped-def]
    reader = Reader(committer.sink.ledger.store, committer.sink.job)
    reader.refresh()
    return reader.snapshots()[-1]


def test_a_job_goes_on_without_redis_and_the_memory_begins_anew_with_it(
    settings: Settings, job: Job, redis: RedisServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(memory, "AGAIN_S", 0.1)
    committer = Committer(settings, job, memory=True)
    committer.commit()
    redis.kill()
    for _ in range(5):
        committer.commit()
    redis.restart()
    assert shown(settings, job) is None
    time.sleep(0.2)
    committer.commit()
    found = shown(settings, job)
    assert found is not None
    last = committer.commit()
    again = shown(settings, job)
    assert again is not None and again[1][-1] == last and again[0] >= found[0]
    committer.close()


def test_a_memory_that_ended_while_the_machine_stood_still_begins_anew_at_once(settings: Settings, job: Job) -> None:
    committer = Committer(settings, job, memory=True)
    committer.commit()
    memory_spec(settings).open().drop(job.id)
    unseen = committer.commit()  # that it is gone is seen here, or by who renews it
    last = committer.commit()
    assert shown(settings, job) == (unseen, [last])
    committer.close()


def test_the_memory_of_a_driver_that_is_gone_ends_by_itself_and_of_a_quiet_one_stays(
    settings: Settings, job: Job, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(memory, "HEAD_TTL_S", 3.0)
    committer = Committer(settings, job, memory=True)
    committer.commit()
    time.sleep(4.5)
    assert shown(settings, job) is not None
    committer.close()
    assert comes_true(lambda: shown(settings, job) is None, 15)
