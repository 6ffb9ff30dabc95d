"""The Redis of `streamjoin up` is reached by its own user alone."""

from __future__ import annotations

import stat
from pathlib import Path
from urllib.parse import urlsplit

import pytest
import redis

from tests.modes import open_to_others
from tests.servers.process import ServerProcess
from worker.app import broker_url
from worker.own_redis import SOCKET_BYTES_MAX, OwnRedis, redis_program

LONG = "x" * SOCKET_BYTES_MAX


@pytest.fixture(autouse=True)
def program() -> None:
    try:
        redis_program()
    except Exception as reason:
        pytest.skip(str(reason))


def test_it_is_a_socket_where_its_path_is_short_enough(tmp_path: Path) -> None:
    path = tmp_path.absolute() / "redis" / "redis.sock"
    if len(str(path)) > SOCKET_BYTES_MAX:
        pytest.skip("the folder of this test has too long a path itself")
    own = OwnRedis(tmp_path)
    assert own.url == f"unix://{path}?db=0"
    assert own.command[own.command.index("--port") + 1] == "0"
    exact = tmp_path / ("y" * (SOCKET_BYTES_MAX - len(str(tmp_path)) - len("//redis/redis.sock")))
    assert urlsplit(OwnRedis(exact).url).scheme == "unix"
    assert urlsplit(OwnRedis(exact.with_name(f"{exact.name}y")).url).scheme == "redis"


def test_attack_a_password_is_on_no_command_line_and_in_no_file_of_others(tmp_path: Path) -> None:
    (tmp_path / LONG / "redis").mkdir(parents=True)
    left = tmp_path / LONG / "redis" / "redis.conf"
    left.write_text("requirepass of-the-start-before")
    left.chmod(0o644)
    own = OwnRedis(tmp_path / LONG)
    password = urlsplit(own.url).password
    assert password is not None and len(password) > 40
    assert not [word for word in own.command if password in word]
    assert left.read_text() == f"requirepass {password}\n"
    assert open_to_others(left.parent) == []
    assert urlsplit(OwnRedis(tmp_path / LONG).url).password != password


@pytest.mark.services
@pytest.mark.parametrize("below", ["", 'with blanks, "quotes", # and ü', LONG])
def test_attack_it_answers_nobody_who_does_not_know_its_url(tmp_path: Path, below: str) -> None:
    own = OwnRedis(tmp_path / below)
    assert not own.listens()
    with ServerProcess("Redis", own.command, tmp_path / "redis.log") as server:
        server.wait_until(own.listens, "does not listen", 30)
        with redis.Redis.from_url(own.url) as client:
            assert client.ping()
            assert client.config_get("save") == {"save": ""}
        parts = urlsplit(own.url)
        if parts.scheme == "unix":
            assert stat.S_IMODE((tmp_path / below / "redis" / "redis.sock").stat().st_mode) == 0o700
            assert open_to_others(tmp_path / below / "redis") == []
        else:
            with (
                redis.Redis(host="127.0.0.1", port=parts.port or 0) as stranger,
                pytest.raises(redis.AuthenticationError),
            ):
                stranger.ping()


@pytest.mark.parametrize(
    ("url", "celerys"),
    [
        ("redis://:pass@127.0.0.1:1/0", "redis://:pass@127.0.0.1:1/0"),
        ("unix:///data/redis.sock?db=0", "redis+socket:///data/redis.sock?virtual_host=0"),
        ("unix://:pass@/a%20b/redis.sock", "redis+socket://:pass@/a%20b/redis.sock?virtual_host=0"),
        ("nonsense://", "nonsense://"),
    ],
)
def test_celery_is_told_the_same_address_in_its_own_words(url: str, celerys: str) -> None:
    assert broker_url(url) == celerys
