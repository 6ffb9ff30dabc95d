"""What `streamjoin up` allows where nothing is set, and where something is."""

from __future__ import annotations

from pathlib import Path

import pytest

from streamjoin.errors import InputError
from worker.platform import read_up_settings


@pytest.fixture(autouse=True)
def plain(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing is set, in a folder of a home."""
    (tmp_path / "me" / "project").mkdir(parents=True)
    monkeypatch.chdir(tmp_path / "me" / "project")
    monkeypatch.setenv("HOME", str(tmp_path / "me"))
    for name in ("AUTH", "HOST", "ALLOWED_PATHS", "OWN_PATHS", "DATA"):
        monkeypatch.delenv(f"STREAMJOIN_{name}", raising=False)


@pytest.mark.parametrize("variables", [{}, {"AUTH": "off"}, {"HOST": "localhost"}, {"HOST": "::1"}])
def test_where_nobody_logs_in_the_folder_and_the_home_folder_can_be_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, variables: dict[str, str]
) -> None:
    for name, value in variables.items():
        monkeypatch.setenv(f"STREAMJOIN_{name}", value)
    settings = read_up_settings()
    assert (settings.auth, settings.allowed_paths) == ("off", ())
    assert settings.own_paths == (tmp_path / "me" / "project", tmp_path / "me")
    # What is started gets them, too.
    assert settings.environment()["STREAMJOIN_OWN_PATHS"] == f"{tmp_path}/me/project,{tmp_path}/me"


@pytest.mark.parametrize(
    "variables", [{"AUTH": "on"}, {"HOST": "0.0.0.0"}, {"ALLOWED_PATHS": "/data"}, {"ALLOWED_PATHS": ""}]
)
def test_where_somebody_logs_in_or_folders_are_named_it_is_no_more_than_that(
    monkeypatch: pytest.MonkeyPatch, variables: dict[str, str]
) -> None:
    for name, value in variables.items():
        monkeypatch.setenv(f"STREAMJOIN_{name}", value)
    settings = read_up_settings()
    assert settings.own_paths == ()
    assert [str(path) for path in settings.allowed_paths] == [value for value in variables.values() if value == "/data"]


@pytest.mark.parametrize(
    ("address", "host", "port", "auth"),
    [
        ("http://127.0.0.1:8016", "127.0.0.1", 8016, "off"),
        ("http://localhost", "localhost", 8000, "off"),
        ("http://[::1]:8017/", "::1", 8017, "off"),
        ("http://0.0.0.0:8016", "0.0.0.0", 8016, "on"),
        ("https://joins.example", "joins.example", 8000, "on"),
    ],
)
def test_an_address_that_clients_were_given_is_where_a_platform_starts(
    monkeypatch: pytest.MonkeyPatch, address: str, host: str, port: int, auth: str
) -> None:
    monkeypatch.delenv("STREAMJOIN_PORT", raising=False)
    monkeypatch.setenv("STREAMJOIN_HOST", address)
    settings = read_up_settings()
    assert (settings.host, settings.port, settings.auth) == (host, port, auth)


def test_two_ports_that_differ_are_refused_and_so_is_one_that_is_none(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("STREAMJOIN_HOST", "http://127.0.0.1:8016")
    monkeypatch.setenv("STREAMJOIN_PORT", "8000")
    with pytest.raises(InputError, match="STREAMJOIN_HOST names port 8016, and STREAMJOIN_PORT 8000"):
        read_up_settings()
    monkeypatch.setenv("STREAMJOIN_PORT", "8016")
    assert read_up_settings().port == 8016
    monkeypatch.setenv("STREAMJOIN_HOST", "http://127.0.0.1:many")
    with pytest.raises(InputError, match=r"[Pp]ort"):
        read_up_settings()


def test_the_root_of_all_files_is_nobodys_home(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir("/")
    monkeypatch.setenv("HOME", "/")
    assert read_up_settings().own_paths == ()
