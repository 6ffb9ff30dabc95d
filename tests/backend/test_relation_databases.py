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
        ("postgresql://db.internal/x\n{}", r"has '\n' in it; write %0A"),
        ("postgresql://2852039166/x", "2852039166 is not one of the hosts that may be reached"),
        ("postgresql://db.internal/x?ho%73t=elsewhere", "may not set ho%73t here"),
        ("sqlite:////proc/self/environ", "in none of the folders that may be read from"),
        ("postgresql://%2Fvar%2Frun/x", "names no one server"),
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


def test_one_that_it_may_read_is_not(settings: Settings, tmp_path: Path) -> None:
    for url in (f"sqlite:///{tmp_path}/open/rates.db", "postgresql://me@db.internal:5433/x?sslmode=require"):
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
