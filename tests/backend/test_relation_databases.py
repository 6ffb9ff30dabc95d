"""Where a registered relation of a database may be."""

from __future__ import annotations

import shutil
import sqlite3
from pathlib import Path

import pytest

from backend.auth.hosts import check_place
from backend.problems import Problem
from backend.settings import Settings
from streamjoin.errors import InputError
from streamjoin.sources.sql import columns_of


@pytest.fixture
def settings(tmp_path: Path) -> Settings:
    (tmp_path / "open").mkdir()
    with sqlite3.connect(tmp_path / "open/rates.db") as database:
        database.execute("CREATE TABLE rates (k INTEGER)")
    return Settings(data=tmp_path / "data", allowed_hosts=["db.internal"], allowed_paths=[tmp_path / "open"])


@pytest.mark.parametrize(
    ("url", "says"),
    [
        (
            "postgresql://me:canary@db.internal/x",
            "has a password, and a spec is shown to everybody; leave it out here, and give it in `secrets`",
        ),
        ("postgresql://db.internal/x?password=canary", "has a password"),
        ("postgresql://elsewhere/x", "elsewhere is not one of the hosts that may be reached"),
        ("postgresql://db.internal/x?host=elsewhere", "may not set host here"),
        ("postgresql://db.internal/x?sslkey=/etc/shadow", "may not set sslkey here"),
        ("postgresql://db.internal/x?sslmode=require#&host=elsewhere", "has '#' in it; write %23"),
        ("postgresql://db.internal/x#&password=canary", "has '#' in it"),
        ("postgresql://db.internal/x\n{}", r"has '\n' in it; leave it out"),
        ("postgresql://2852039166/x", "2852039166 is not one of the hosts that may be reached"),
        ("postgresql://db.internal/x?ho%73t=elsewhere", "has a setting that is not name=value"),
        ("sqlite:////proc/self/environ", "in none of the folders that may be read from"),
        ("postgresql://%2Fvar%2Frun/x", "does not name one server"),
        ("sqlite:////etc/x.db", "in none of the folders that may be read from"),
        ("sqlite:///rates.db", "a path on this platform is absolute"),
        ("rates.db", "begins with postgresql:// or sqlite://"),
        (None, "begins with postgresql:// or sqlite://"),
    ],
)
def test_a_database_that_the_platform_may_not_read_is_refused(url: str | None, says: str, settings: Settings) -> None:
    with pytest.raises(Problem) as refused:
        check_place(settings, {"source": "sql", "url": url, "table": "rates"})
    assert says in refused.value.detail and "canary" not in refused.value.detail


@pytest.mark.parametrize(
    ("url", "says"),
    [
        ("db.internal?sslmode=disable@10.0.0.7:6379/db?sslmode=disable", "has '@' in its setting sslmode"),
        ("db.internal?sslmode=disable@%2Fvar%2Frun%2Fpostgresql:5432/c?sslmode=disable", "has '@' in its setting"),
        ("db.internal?sslmode=disable@elsewhere/db", "has '@' in its setting sslmode; write %40"),
        ("db.internal?sslmode=disable@db.internal/d?passfile=/any/file", "has '@' in its setting sslmode"),
        ("db.internal?@elsewhere", "has a setting that is not name=value"),
        ("u@evil,x@db.internal/db", "has more than one @"),
        ("u:canary@evil@db.internal/db", "has more than one @"),
        ("u@evil,db.internal/db", "does not name one server"),
        ("/db", "does not name one server"),
        ("u@:5432/db", "does not name one server"),
        ("%64b.internal/db", "does not name one server"),
        ("[db.internal]/db", "is not a URL"),
        ("[::1%25lo]/db", "does not name one server"),
        ("db.internal/db/c", "has '/' in its database; write %2F"),
        ("db.internal/u@elsewhere", "has '@' in its database; write %40"),
        ("db.internal/x?sslmode=require;hostaddr=10.0.0.7", "has '=' in its setting sslmode; write %3D"),
        ("db.internal/x?sslmode=require;hostaddr", "may set sslmode to letters, digits"),
        ("db.internal/x?sslmode=require&hostaddr=10.0.0.7", "may not set hostaddr here"),
        ("db.internal/x?sslmode=require%26hostaddr%3D10.0.0.7", "may set sslmode to letters, digits"),
        ("db.internal/x?sslmode=require&sslmode=disable", "sets sslmode twice"),
        ("db.internal/x?service=any", "may not set service here"),
        ("db.internal/x?sslkeylogfile=/any/file", "may not set sslkeylogfile here"),
        ("db.internal/x?passfile=/any/file", "may not set passfile here"),
        ("x%0D%0ASET%20a%20b%0D%0A@db.internal:6379/db", "has a character in its user that cannot be printed"),
        ("u:canary%0A@db.internal:6379/db", "has a character in its password that cannot be printed"),
        ("db.internal:6379/%0D%0ASET%20a%20b", "has a character in its database that cannot be printed"),
        (
            "db.internal/x?application_name=%0A",
            "has a character in its setting application_name that cannot be printed",
        ),
        ("u%00@db.internal/db", "has a character in its user that cannot be printed"),
        ("u%C2%85@db.internal/db", "has a character in its user that cannot be printed"),
        ("u:canary%FF@db.internal/db", "has a % in its password that does not begin a UTF-8 character; write %25"),
        ("u:canary%@db.internal/db", "has a % in its password"),
        ("u:canary 1@db.internal/db", "has ' ' in its password; write %20"),
        ("u:canary\r\n@db.internal/db", r"has '\r' in it; leave it out"),
    ],
)
def test_attack_a_url_that_libpq_reads_otherwise_is_refused(url: str, says: str, settings: Settings) -> None:
    with pytest.raises(Problem) as refused:
        check_place(settings, {"source": "sql", "url": f"postgresql://{url}", "table": "rates"})
    assert says in refused.value.detail and "canary" not in refused.value.detail


def test_one_that_it_may_read_is_not(settings: Settings, tmp_path: Path) -> None:
    for url in (
        f"sqlite:///{tmp_path}/open/rates.db", "postgresql://me@db.internal:5433/x?sslmode=require",
        "postgresql://m%40e@DB.internal/a%2Fb?application_name=my%20app&connect_timeout=3", "postgres://db.internal",
    ):  # fmt: skip
        check_place(settings, {"source": "sql", "url": url, "table": "rates"})


def test_attack_a_link_to_a_database_elsewhere_and_parameters_of_sqlite_s_lead_nowhere(
    settings: Settings, tmp_path: Path
) -> None:
    closed = tmp_path / "closed.db"
    shutil.copy(tmp_path / "open/rates.db", closed)
    (tmp_path / "open/link.db").symlink_to(closed)
    with pytest.raises(Problem, match="in none of the folders"):
        check_place(settings, {"source": "sql", "url": f"sqlite:///{tmp_path}/open/link.db", "table": "rates"})
    for url in (f"sqlite:///{tmp_path}/open/new.db%3Fmode=rwc", f"sqlite:///{tmp_path}/open/new.db"):
        with pytest.raises(InputError, match="does not exist"):
            columns_of(url, "rates")
    assert not list((tmp_path / "open").glob("new*"))
