"""Redis keeps the contract of a result store, names its failures, and forgets drivers that are gone."""

from __future__ import annotations

import pickle
import re
from collections.abc import Iterator

import pytest
from redis import Redis

from streamjoin.results.stores.redis import RedisStore
from streamjoin.results.stores.spec import StoreSpec
from streamjoin.results.stores.store import StoreDownError, StoreError, StoreUncertainError
from tests.servers.redis import RedisServer
from tests.unit.results.stores.contract import StoreContract, key

pytestmark = pytest.mark.services


@pytest.fixture(scope="module")
def server() -> Iterator[RedisServer]:
    with RedisServer(by_password=True) as server:
        yield server


class TestRedis(StoreContract):
    @pytest.fixture
    def store(self, server: RedisServer) -> Iterator[RedisStore]:
        store = RedisStore(server.url)
        store.prepare()
        yield store
        store.close()

    @pytest.fixture
    def another(self, server: RedisServer) -> Iterator[RedisStore]:
        another = StoreSpec("redis", (("url", server.url),)).open()
        assert isinstance(another, RedisStore)
        yield another
        another.close()

    def test_it_travels_to_another_process(self, store: RedisStore, job: str) -> None:
        copy = pickle.loads(pickle.dumps(store))
        copy.put_blocks(job, [(key(), b"x")])
        assert list(store.get_blocks(job, [key()])) == [(key(), b"x")]
        copy.close()


def test_a_head_that_nobody_renews_is_forgotten_and_its_blocks_later(server: RedisServer) -> None:
    store = RedisStore(server.url, head_ttl_s=60)
    store.put_blocks("gone", [(key(), b"x")])
    store.put_records("gone", [("job", b"y")])
    assert store.swap_head("gone", None, b"1")
    head, *others = (f"{store.prefix}:gone:{part}" for part in ("head", "blocks", "records", "names"))
    with Redis.from_url(server.url) as client:
        for renewed in (False, True):
            if renewed:
                assert all(client.expire(name, 25) for name in (head, *others))
                assert store.renew("gone")
            assert 30 < client.ttl(head) <= 60
            assert all(120 < client.ttl(name) <= 240 for name in others)
        assert store.head("gone") == b"1"
        client.delete(head)  # as when its time is over
    assert store.head("gone") is None
    assert list(store.get_blocks("gone", [key()])) == [(key(), b"x")]  # who saw the head finds what it names
    assert not store.renew("gone")
    assert "gone" not in store.jobs()
    store.close()


def test_a_server_that_is_gone_is_named_and_blocks_may_be_let_go() -> None:
    with RedisServer() as server:
        store = RedisStore(server.url, best_effort=True)
        assert store.swap_head("j", None, b"1")
        server.kill()
        for act in (lambda: store.head("j"), store.prepare, store.jobs, lambda: store.delete_blocks("j", [key()])):
            with pytest.raises(StoreDownError, match=f"Redis at {re.escape(server.url.removeprefix('unix://'))}"):
                act()
        with pytest.raises(StoreDownError):
            store.swap_head("j", b"1", b"2")
        store.put_blocks("j", [(key(), b"x")])
        store.put_records("j", [("job", b"y")])
        server.restart()
        assert store.head("j") is None
        store.close()


def configure(server: RedisServer, name: str, value: str) -> None:
    with Redis.from_url(server.url) as client:
        client.config_set(name, value)


def test_a_password_is_not_shown_and_a_wrong_one_is_named() -> None:
    with RedisServer(by_password=True) as server:
        wrong = RedisStore(re.sub(":[^:@]*@", ":guess@", server.url))
        with pytest.raises(StoreError, match="refuses") as told:
            wrong.head("j")
        assert "guess" not in str(told.value) and not isinstance(told.value, StoreDownError | StoreUncertainError)
        wrong.close()


def test_a_full_server_is_named() -> None:
    with RedisServer() as server:
        configure(server, "maxmemory", "2mb")
        store = RedisStore(server.url)
        with pytest.raises(StoreDownError, match="no memory left"):
            store.put_blocks("j", [(key(number=number), bytes(1 << 17)) for number in range(100)])
        store.close()
