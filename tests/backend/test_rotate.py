"""Secrets get another key by one command, all of them or none."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from pydantic import SecretStr
from sqlalchemy import select, update

from backend.auth.rotate import rotate
from backend.auth.secrets import WrongKeyError, open_sealed, seal
from backend.catalog.database import Catalog
from backend.catalog.migrate import migrate
from backend.catalog.models import Event, Relation, Stream
from backend.settings import Settings
from streamjoin.errors import InputError

BEFORE, AFTER, OTHER = (f"a key of this test, number {number}" for number in range(3))


def settings_of(folder: Path, key: str) -> Settings:
    return Settings(data=folder, secret_key=SecretStr(key))


@pytest.fixture
def catalog(tmp_path: Path) -> Catalog:
    """With two streams and a relation that have secrets, and a stream that has none."""
    settings = settings_of(tmp_path, BEFORE)
    migrate(settings.catalog)
    found = Catalog(settings.catalog)
    with found.begin() as session:
        for name in ("a", "b", "c"):
            sealed = None if name == "c" else seal(settings, {"sasl.password": f"canary {name}"})
            session.add(Stream(id=f"str_{name}", name=name, owner_id=None, spec={}, secrets=sealed))
        sealed = seal(settings, {"password": "canary r"})
        session.add(Relation(id="rel_r", name="r", owner_id=None, spec={}, secrets=sealed))
    return found


def opened(catalog: Catalog, settings: Settings) -> dict[str, str]:
    with catalog.read() as session:
        rows = [
            row
            for table in (Stream, Relation)
            for row in session.scalars(select(table).where(table.secrets.is_not(None)))
        ]
        return {row.name: next(iter(open_sealed(settings, row.secrets or b"").values())) for row in rows}


def test_all_secrets_get_the_new_key_and_again_changes_nothing(tmp_path: Path, catalog: Catalog) -> None:
    settings = settings_of(tmp_path, AFTER)
    assert rotate(settings, SecretStr(BEFORE), catalog) == 3
    assert opened(catalog, settings) == {"a": "canary a", "b": "canary b", "r": "canary r"}
    with pytest.raises(WrongKeyError):
        opened(catalog, settings_of(tmp_path, BEFORE))
    assert rotate(settings, SecretStr(BEFORE), catalog) == 0
    with catalog.read() as session:
        assert [event.kind for event in session.scalars(select(Event))] == ["secrets.rotated"]


def test_one_that_neither_key_opens_leaves_all_as_they_were(tmp_path: Path, catalog: Catalog) -> None:
    with catalog.begin() as session:
        sealed = seal(settings_of(tmp_path, OTHER), {"x": "y"})
        session.execute(update(Stream).where(Stream.name == "b").values(secrets=sealed))
    with pytest.raises(InputError, match=r"stream b: .*nothing was changed"):
        rotate(settings_of(tmp_path, AFTER), SecretStr(BEFORE), catalog)
    with catalog.read() as session:
        kept = session.scalars(select(Stream.secrets).where(Stream.name == "a")).one()
    assert open_sealed(settings_of(tmp_path, BEFORE), kept or b"") == {"sasl.password": "canary a"}


@pytest.mark.slow
def test_the_command_takes_both_keys_from_the_environment(tmp_path: Path, catalog: Catalog) -> None:
    (tmp_path / "former").write_text(BEFORE)
    variables = {"STREAMJOIN_DATA": str(tmp_path), "STREAMJOIN_SECRET_KEY": AFTER}

    def run(**more: str) -> subprocess.CompletedProcess[str]:
        command = [sys.executable, "-m", "streamjoin", "config", "rotate-key"]
        return subprocess.run(command, env={**os.environ, **variables, **more}, capture_output=True, text=True)

    refused = run()
    assert refused.returncode == 1 and "set STREAMJOIN_FORMER_SECRET_KEY" in refused.stderr
    done = run(STREAMJOIN_FORMER_SECRET_KEY_FILE=str(tmp_path / "former"))
    assert done.returncode == 0 and "secrets of 3 streams and relations have the new key" in done.stderr, done.stderr
    assert opened(catalog, settings_of(tmp_path, AFTER)) == {"a": "canary a", "b": "canary b", "r": "canary r"}
    assert "canary" not in done.stderr + done.stdout
