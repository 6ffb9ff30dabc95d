"""The first admin of a new platform."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from pydantic import SecretStr
from sqlalchemy import select, update

from backend.auth import first_user
from backend.auth.first_password import FILE
from backend.auth.first_user import ensure_admin
from backend.auth.passwords import hash_password, matches
from backend.catalog.database import Catalog
from backend.catalog.ids import new_id
from backend.catalog.migrate import migrate
from backend.catalog.models import User
from backend.settings import Settings
from streamjoin.errors import InputError
from tests.servers.postgres import PostgresServer

AT_ONCE = 4
ENSURE = """
import sys
from pathlib import Path
from backend.auth.first_user import ensure_admin
from backend.catalog.database import Catalog
from backend.settings import Settings
sys.stdin.readline()
settings = Settings(data=Path(sys.argv[1]), catalog_url=sys.argv[2])
print(ensure_admin(settings, Catalog(settings.catalog)) or "")
"""


@pytest.fixture
def catalog(tmp_path: Path) -> Iterator[Catalog]:
    """Without users."""
    settings = Settings(data=tmp_path)
    migrate(settings.catalog)
    found = Catalog(settings.catalog)
    yield found
    found.close()


def password_of(catalog: Catalog) -> str | None:
    with catalog.read() as session:
        return session.scalars(select(User.password).where(User.name == "admin", User.role == "admin")).one()


def test_a_new_platform_gets_an_admin_and_says_the_password_once(catalog: Catalog, tmp_path: Path) -> None:
    settings = Settings(data=tmp_path)
    password = ensure_admin(settings, catalog)
    assert password and len(password) >= 20
    file = tmp_path / FILE
    assert file.read_text().strip() == password
    assert file.stat().st_mode & 0o777 == 0o600
    assert matches(password, password_of(catalog))
    assert ensure_admin(settings, catalog) is None
    assert sorted(path.name for path in tmp_path.iterdir() if "admin" in path.name) == [FILE]


def test_a_given_password_is_taken_and_written_nowhere(catalog: Catalog, tmp_path: Path) -> None:
    settings = Settings(data=tmp_path, admin_password=SecretStr("given password"))
    assert ensure_admin(settings, catalog) is None
    assert matches("given password", password_of(catalog))
    assert not (tmp_path / FILE).exists()
    # It is for the beginning: later changes are made by logging in.
    assert ensure_admin(Settings(data=tmp_path, admin_password=SecretStr("another one")), catalog) is None
    assert matches("given password", password_of(catalog))


def test_a_given_password_that_is_none_is_told_by_its_setting(catalog: Catalog, tmp_path: Path) -> None:
    for wrong in ("", "short", "x" * 300):
        with pytest.raises(InputError, match="STREAMJOIN_ADMIN_PASSWORD"):
            ensure_admin(Settings(data=tmp_path, admin_password=SecretStr(wrong)), catalog)


def test_without_auth_nobody_is_made(catalog: Catalog, tmp_path: Path) -> None:
    assert ensure_admin(Settings(data=tmp_path, auth="off"), catalog) is None
    with catalog.read() as session:
        assert session.scalars(select(User)).all() == []


def test_a_start_that_was_cut_off_is_finished_with_the_same_password(catalog: Catalog, tmp_path: Path) -> None:
    (tmp_path / FILE).write_text("written before the crash\n")
    assert ensure_admin(Settings(data=tmp_path), catalog) == "written before the crash"


def test_another_user_of_that_name_is_told(catalog: Catalog, tmp_path: Path) -> None:
    with catalog.begin() as session:
        session.add(User(id=new_id("usr"), name="admin", role="viewer", password=None, disabled=False))
    with pytest.raises(InputError, match="rename"):
        ensure_admin(Settings(data=tmp_path), catalog)
    with catalog.begin() as session:
        session.execute(update(User).values(name="somebody"))
    assert ensure_admin(Settings(data=tmp_path), catalog)


def test_a_folder_that_cannot_be_written_is_told(catalog: Catalog, tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(InputError, match="STREAMJOIN_ADMIN_PASSWORD"):
        ensure_admin(Settings(data=tmp_path / "file" / "data"), catalog)


def test_the_file_of_a_machine_that_came_second_is_removed(
    catalog: Catalog, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert ensure_admin(Settings(data=tmp_path / "first"), catalog)
    real = first_user._has_admin
    looks = iter([False])
    monkeypatch.setattr(first_user, "_has_admin", lambda catalog: next(looks, None) is None and real(catalog))
    assert ensure_admin(Settings(data=tmp_path / "second"), catalog) is None
    assert (tmp_path / "first" / FILE).exists()
    assert not (tmp_path / "second" / FILE).exists()


def ensure_at_once(data: Path, url: str) -> list[str]:
    environment = {**os.environ, "PYTHONPATH": str(Path(__file__).resolve().parents[2])}
    started = [
        subprocess.Popen([sys.executable, "-c", ENSURE, str(data), url], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                         text=True, env=environment)
        for _ in range(AT_ONCE)
    ]  # fmt: skip
    for process in started:
        assert process.stdin is not None
        process.stdin.write("go\n")
        process.stdin.flush()
    answers = [process.communicate(timeout=60)[0].strip() for process in started]
    assert [process.returncode for process in started] == [0] * AT_ONCE
    return answers


@pytest.mark.slow
def test_processes_that_start_together_make_one_admin_with_one_password(catalog: Catalog, tmp_path: Path) -> None:
    answers = ensure_at_once(tmp_path, str(catalog.url))
    assert [answer for answer in answers if answer] == [(tmp_path / FILE).read_text().strip()]
    assert matches((tmp_path / FILE).read_text().strip(), password_of(catalog))


@pytest.mark.services
def test_so_they_do_in_postgresql(tmp_path: Path) -> None:
    with PostgresServer() as server:
        migrate(server.url)
        answers = ensure_at_once(tmp_path, server.url)
        shared = Catalog(server.url)
        assert [answer for answer in answers if answer] == [(tmp_path / FILE).read_text().strip()]
        assert matches((tmp_path / FILE).read_text().strip(), password_of(shared))
        shared.close()


def test_passwords_are_the_same_however_a_keyboard_writes_them() -> None:
    assert matches("cafe\u0301 noir", hash_password("café noir"))
    assert not matches("cafe noir", hash_password("café noir"))
    assert not matches("", None)
