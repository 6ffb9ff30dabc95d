"""URLs of PostgreSQL servers: that libpq itself finds the parts in them that were looked at, and no others."""

from __future__ import annotations

from random import Random

import pytest
from psycopg import OperationalError
from psycopg.pq import Conninfo

from streamjoin.errors import InputError
from streamjoin.sources.database import Database

GOOD = [
    "postgresql://me:pw@localhost:5432/db?sslmode=require&application_name=app",
    "postgresql://localhost?sslmode=require",
    "postgresql://me@[::1]/db",
]
LETTERS = "@?/,:%&=[];#a1."
CASES = 20_000
LIMITS = {"connect_timeout": "10", "tcp_user_timeout": "30000", "keepalives_idle": "15"}


def of_libpq(url: str) -> dict[str, str] | None:
    """What libpq would connect with; None where it refuses."""
    try:
        return {one.keyword.decode(): one.val.decode() for one in Conninfo.parse(url.encode()) if one.val}
    except OperationalError:
        return None


def looked_at(database: Database) -> dict[str, str]:
    server = database.server
    assert server is not None and server.host.lower() == database.host
    parts = {"host": server.host, "port": server.port, "user": server.user, "password": server.password,
             "dbname": server.database, **server.settings}  # fmt: skip
    return {name: value for name, value in parts.items() if value}


@pytest.mark.parametrize(
    ("url", "parts"),
    [
        ("postgresql://h", {"host": "h"}),
        ("postgres://h/d", {"host": "h", "dbname": "d"}),
        ("postgresql+psycopg://me@h:5/d", {"host": "h", "port": "5", "user": "me", "dbname": "d"}),
        ("POSTGRESQL://me@H.x/d?", {"host": "H.x", "user": "me", "dbname": "d"}),
        ("postgresql://:pw@h/", {"host": "h", "password": "pw"}),
        ("postgresql://u%40x:a:b,c%2F%3F%23é@h", {"host": "h", "user": "u@x", "password": "a:b,c/?#é"}),
        ("postgresql://u@[fe80::1]:5432/d", {"host": "fe80::1", "port": "5432", "user": "u", "dbname": "d"}),
        ("postgresql://[::1]/a%2Fb%20c", {"host": "::1", "dbname": "a/b c"}),
        (
            "postgresql://h/d?sslrootcert=/etc/ca.pem&options=-c%20a%3Db&application_name=a+b",
            {"host": "h", "dbname": "d", "sslrootcert": "/etc/ca.pem", "options": "-c a=b", "application_name": "a+b"},
        ),
    ],
)
def test_libpq_is_given_the_parts_of_a_good_url(url: str, parts: dict[str, str]) -> None:
    database = Database(url)
    assert looked_at(database) == parts
    assert of_libpq(database.for_libpq) == LIMITS | parts
    assert Database(database.for_libpq).for_libpq == database.for_libpq


def test_a_limit_in_the_url_is_kept() -> None:
    assert of_libpq(Database("postgresql://h?connect_timeout=3").for_libpq) == LIMITS | {
        "connect_timeout": "3",
        "host": "h",
    }


def mangled(random: Random) -> str:
    """A good URL with one or two short texts put in, some in place of what was there."""
    url = random.choice(GOOD)
    for _ in range(random.choice((1, 1, 2))):
        at = random.randint(len("postgresql://"), len(url))
        odd = "".join(random.choices(LETTERS, k=random.choice((1, 1, 2, 3))))
        url = url[:at] + odd + url[at + random.choice((0, 0, 1, 5)) :]
    return url


def test_attack_whatever_passes_is_read_alike_by_libpq() -> None:
    random, passed = Random(20261129), 0
    for _ in range(CASES):
        url = mangled(random)
        try:
            database = Database(url)
        except InputError:
            continue
        parts = looked_at(database)
        given, written = of_libpq(database.for_libpq), of_libpq(url)
        # It refuses settings that it does not have, and is then connected to nothing.
        assert given in (None, LIMITS | parts) and written in (None, parts), url
        passed += given is not None
    assert passed > CASES / 20, "too few pass to say anything"
