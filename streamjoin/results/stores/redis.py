"""Recent results in Redis: the memory that a job's driver and every API process share.

A hash of blocks, a hash of records with their names in a sorted set, and one string with the head for each job. The
head's compare-and-set is WATCH and MULTI, so that a user without scripting is enough. Redis may lose all of it: a
store that lasts is written first, and whatever reads here can read there.
"""

from __future__ import annotations

import contextlib
import os
import struct
from collections.abc import Iterator, Sequence
from typing import Any, NoReturn

import redis
from redis.backoff import NoBackoff
from redis.exceptions import (
    AuthenticationError,
    BusyLoadingError,
    ConnectionError,
    OutOfMemoryError,
    RedisError,
    TimeoutError,
    WatchError,
)
from redis.retry import Retry

from streamjoin.results.stores.store import (
    BlockKey,
    Blocks,
    Records,
    StoreDownError,
    StoreError,
    StoreUncertainError,
)

TIMEOUT_S = 2.0
_KEY = struct.Struct(">iqqqii")
_KEYS_A_CALL = 256
_CALL_BYTES = 4 << 20
_LOST = (ConnectionError, TimeoutError)


class RedisStore:
    """A store in a Redis server. Any number of threads.

    Args:
        url: such as redis://127.0.0.1:6379/0.
        prefix: what the names of all its keys begin with.
        head_ttl_s: a head that is neither replaced nor renewed for so long is forgotten, and the rest of its job some
            time later: nobody takes the memory of a driver that is gone for the newest there is. None keeps all.
        best_effort: blocks and records that cannot be written are let go; whoever misses them reads the durable store.
    """

    kind = "redis"
    block_bytes = 1 << 18

    def __init__(
        self,
        url: str,
        prefix: str = "streamjoin:results",
        head_ttl_s: float | None = None,
        best_effort: bool = False,
        timeout_s: float = TIMEOUT_S,
    ) -> None:
        self.url = url
        self.prefix = prefix
        self.head_ttl_s = head_ttl_s
        self.best_effort = best_effort
        self.timeout_s = timeout_s
        self._client: redis.Redis | None = None
        self._process = 0

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_client": None, "_process": 0}

    def prepare(self) -> None:
        """Nothing to make; it only looks whether the server answers."""
        with self._using() as client:
            client.ping()

    def put_blocks(self, job: str, blocks: Blocks) -> None:
        """See `Store`."""
        for some in _by_size(blocks):
            with self._using(let_go=self.best_effort) as client:
                client.hset(self._key(job, "blocks"), mapping={_field(key): content for key, content in some})
                self._keep(client, job, "blocks")

    def get_blocks(self, job: str, keys: Sequence[BlockKey]) -> Iterator[tuple[BlockKey, bytes]]:
        """See `Store`."""
        for start in range(0, len(keys), _KEYS_A_CALL):
            some = keys[start : start + _KEYS_A_CALL]
            with self._using() as client:
                found: list[bytes | None] = client.hmget(self._key(job, "blocks"), [_field(key) for key in some])
            yield from ((key, content) for key, content in zip(some, found, strict=True) if content is not None)

    def delete_blocks(self, job: str, keys: Sequence[BlockKey]) -> None:
        """See `Store`."""
        for start in range(0, len(keys), _KEYS_A_CALL):
            with self._using() as client:
                client.hdel(self._key(job, "blocks"), *map(_field, keys[start : start + _KEYS_A_CALL]))

    def list_blocks(self, job: str) -> Iterator[BlockKey]:
        """See `Store`."""
        with self._using() as client:
            fields: list[bytes] = client.hkeys(self._key(job, "blocks"))
        yield from (_block_key(field) for field in fields)

    def put_records(self, job: str, records: Records) -> None:
        """See `Store`."""
        if not records:
            return
        with self._using(let_go=self.best_effort) as client, client.pipeline(transaction=True) as both:
            both.hset(self._key(job, "records"), mapping=dict(records))
            both.zadd(self._key(job, "names"), {name: 0 for name, _ in records})
            both.execute()
            self._keep(client, job, "records", "names")

    def get_records(self, job: str, first: str, last: str) -> Iterator[tuple[str, bytes]]:
        """See `Store`."""
        with self._using() as client:
            names: list[bytes] = client.zrangebylex(self._key(job, "names"), f"[{first}", f"[{last}")
        for start in range(0, len(names), _KEYS_A_CALL):
            some = names[start : start + _KEYS_A_CALL]
            with self._using() as client:
                found: list[bytes | None] = client.hmget(self._key(job, "records"), some)
            for name, content in zip(some, found, strict=True):
                if content is not None:
                    yield name.decode(), content

    def delete_records(self, job: str, names: Sequence[str]) -> None:
        """See `Store`."""
        if not names:
            return
        with self._using() as client, client.pipeline(transaction=True) as both:
            both.hdel(self._key(job, "records"), *names)
            both.zrem(self._key(job, "names"), *names)
            both.execute()

    def head(self, job: str) -> bytes | None:
        """See `Store`."""
        with self._using() as client:
            found: bytes | None = client.get(self._key(job, "head"))
        return found

    def swap_head(self, job: str, expected: bytes | None, new: bytes) -> bool:
        """See `Store`."""
        name = self._key(job, "head")
        asked = False
        try:
            with self._using() as client, client.pipeline(transaction=True) as both:
                both.watch(name)
                if both.get(name) != expected:
                    return False
                both.multi()
                both.set(name, new, px=None if self.head_ttl_s is None else int(self.head_ttl_s * 1e3))
                both.sadd(f"{self.prefix}:jobs", job)
                asked = True
                try:
                    both.execute()
                except WatchError as cause:
                    if not isinstance(cause.__context__, _LOST):  # somebody else was faster
                        return False
                    raise
                return True
        except StoreDownError as cause:
            if asked:
                raise StoreUncertainError(f"{self} gave no answer to a compare-and-set; read the head back") from cause
            raise

    def renew(self, job: str) -> bool:
        """Keep a job for another `head_ttl_s`; whether its head was still there."""
        if self.head_ttl_s is None:
            return self.head(job) is not None
        with self._using() as client:
            there = bool(client.pexpire(self._key(job, "head"), int(self.head_ttl_s * 1e3)))
            self._keep(client, job, "blocks", "records", "names")
        return there

    def jobs(self) -> list[str]:
        """See `Store`."""
        with self._using() as client:
            names: list[str] = sorted(name.decode() for name in client.smembers(f"{self.prefix}:jobs"))
            if not names:
                return []
            heads = client.mget([self._key(name, "head") for name in names])
            if gone := [name for name, head in zip(names, heads, strict=True) if head is None]:
                client.srem(f"{self.prefix}:jobs", *gone)
        return [name for name in names if name not in gone]

    def drop(self, job: str) -> None:
        """See `Store`."""
        with self._using() as client:
            client.delete(self._key(job, "head"))
            client.srem(f"{self.prefix}:jobs", job)
            client.unlink(*(self._key(job, part) for part in ("names", "records", "blocks")))

    def close(self) -> None:
        """See `Store`."""
        if self._client is not None and self._process == os.getpid():
            self._client.close()
        self._client = None

    def __str__(self) -> str:
        place = self.url.rpartition("@")[2]  # without a password
        return f"Redis at {place.removeprefix('redis://').removeprefix('unix://')}"

    def _key(self, job: str, part: str) -> str:
        return f"{self.prefix}:{job}:{part}"

    def _keep(self, client: redis.Redis, job: str, *parts: str) -> None:
        # Longer than the head: whoever saw the head finds what it names.
        if self.head_ttl_s is not None:
            for part in parts:
                client.pexpire(self._key(job, part), int(self.head_ttl_s * 4e3))

    @contextlib.contextmanager
    def _using(self, let_go: bool = False) -> Iterator[Any]:
        """The client, made at its first use in this process; Redis' errors become ours.

        It is Any because redis-py types every answer as text or bytes, and nothing is decoded here.
        """
        if self._client is None or self._process != os.getpid():
            # Repeating is the caller's: only the caller knows what may be repeated.
            self._client = redis.Redis.from_url(
                self.url, socket_timeout=self.timeout_s, socket_connect_timeout=self.timeout_s,
                retry=Retry(NoBackoff(), 0), health_check_interval=15,
            )  # fmt: skip
            self._process = os.getpid()
        try:
            yield self._client
        except RedisError as cause:
            if not let_go:
                self._raise(cause)

    def _raise(self, cause: RedisError) -> NoReturn:
        lost = isinstance(cause, _LOST) or isinstance(cause.__context__, _LOST)
        if isinstance(cause, AuthenticationError):
            raise StoreError(f"{self} refuses the name or password in its URL") from None
        if isinstance(cause, OutOfMemoryError):
            raise StoreDownError(f"{self} has no memory left; raise its maxmemory") from None
        if isinstance(cause, BusyLoadingError) or lost:
            raise StoreDownError(f"{self} cannot be reached: {cause}") from None
        raise StoreError(f"{self} failed: {cause}") from None


def _by_size(blocks: Blocks) -> Iterator[Blocks]:
    """In parts of a few MiB, so that one call neither fills the server's buffers nor runs into the time-out."""
    some: list[tuple[BlockKey, bytes]] = []
    size = 0
    for key, content in blocks:
        some.append((key, content))
        size += len(content)
        if size >= _CALL_BYTES or len(some) >= _KEYS_A_CALL:
            yield some
            some, size = [], 0
    if some:
        yield some


def _field(key: BlockKey) -> bytes:
    return _KEY.pack(key.bucket, key.lowest, key.generation, key.batch, key.unit, key.number)


def _block_key(field: bytes) -> BlockKey:
    return BlockKey(*_KEY.unpack(field))
