"""The files of `streamjoin streams` and `streamjoin relations`: how they may be written, and what a look says."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml
from pydantic import SecretStr

from streamjoin.client.client import Relations, Streams
from tests.client.conftest import Command
from tests.client.serve import Server

pytestmark = pytest.mark.slow

SALES = "source: csv\npath: {path}\ntime: sold_at\n"
TABLE = "source: sql\nurl: postgresql://kim@127.0.0.1:9/x\ntable: t\n"


@pytest.fixture
def files(platform: Server) -> Path:
    """A folder that the platform may read."""
    folder = platform.app.state.context.settings.allowed_paths[0]
    assert isinstance(folder, Path)
    return folder


def test_a_name_may_stand_among_the_fields_of_a_stream(streamjoin: Command, files: Path) -> None:
    entry = SALES.format(path=files / "sales.csv")
    made = streamjoin("streams", "create", "-f", "-", "-o", "json", stdin=f"name: flat_sales\n{entry}")
    assert made.status == 0, made.err
    assert (made.json()["name"], made.json()["spec"]) == ("flat_sales", yaml.safe_load(entry))
    named = f"name: flat_sales\n{entry}delay: 1s\n"
    changed = streamjoin("streams", "update", "flat_sales", "-f", "-", "-o", "json", stdin=named)
    assert changed.json()["spec"]["delay"] == "1s", changed.err


def test_another_name_in_the_file_than_in_the_command_is_told(streamjoin: Command, files: Path) -> None:
    entry = SALES.format(path=files / "none.csv")
    for text in (f"name: in_file\n{entry}", yaml.safe_dump({"name": "in_file", "spec": yaml.safe_load(entry)})):
        made = streamjoin("streams", "create", "in_command", "-f", "-", "-o", "json", stdin=text)
        assert (made.status, made.json()["name"]) == (0, "in_command"), made.err
        said = "the stream is called in_command, as the command says; the file says `name: in_file`"
        assert made.err == f"streamjoin: {said}\n"
        assert streamjoin("streams", "delete", "in_command").status == 0
    same = streamjoin("streams", "create", "in_file", "-f", "-", "-o", "json", stdin=f"name: in_file\n{entry}")
    assert (same.status, same.err) == (0, "")


def test_a_password_stands_beside_a_relation_s_fields(streamjoin: Command, platform: Server) -> None:
    settings = platform.app.state.context.settings
    text = f"name: flat_table\nsecrets: {{password: canary}}\n{TABLE}"
    settings.secret_key = None
    without = streamjoin("relations", "create", "-f", "-", stdin=text)
    assert without.status == 2, without
    assert without.err == (
        "streamjoin: secrets cannot be kept, because the platform has no STREAMJOIN_SECRET_KEY; whoever runs it can "
        "set that, or STREAMJOIN_SECRET_KEY_FILE, to at least 16 random characters, the same for all its processes, "
        "and restart it\n"
    )
    settings.secret_key = SecretStr("a key of this test and of nobody else")
    settings.allowed_hosts = ["127.0.0.1"]
    made = streamjoin("relations", "create", "-f", "-", "-o", "json", stdin=text)
    assert made.status == 0, made.err
    kept = made.json()
    assert (kept["name"], kept["spec"], kept["has_secrets"]) == ("flat_table", yaml.safe_load(TABLE), True)
    assert "canary" not in made.out


@pytest.mark.parametrize("what", ["streams", "relations"])
def test_help_shows_a_file_with_a_name(command: Command, what: str) -> None:
    said = command(what, "create", "--help").out
    assert "name: " in said and "source: " in said


BAD = {"k: expected an int32": 1, "amount: 'x' is not an int32": 3}


def looked(rows_seen: int, bad: dict[str, int]) -> dict[str, Any]:
    """A look as the platform answers it, at rows with the one column k."""
    return {"columns": [{"name": "k", "type": "int32"}], "rows": [[1]] * rows_seen, "rows_seen": rows_seen,
            "bad_records": bad, "skew": {}, "rate_per_s": None, "times": [], "widened": [], "row_count": None,
            "files": None, "bytes": None}  # fmt: skip


@pytest.fixture
def look(command: Command, monkeypatch: pytest.MonkeyPatch) -> Callable[..., Any]:
    """`streamjoin streams test` or `relations test`, of which the platform answers a look."""

    def call(what: str, answer: dict[str, Any], *arguments: str, stdin: str = "source: csv\n") -> Any:
        for group in (Streams, Relations):
            monkeypatch.setattr(group, "test", lambda *_, **__: answer)
        return command(what, "test", "-f", "-", "--host", "http://127.0.0.1:1", *arguments, stdin=stdin)

    return call


@pytest.mark.parametrize("what", ["streams", "relations"])
def test_a_look_tells_bad_records_and_fails_if_there_are_no_others(what: str, look: Callable[..., Any]) -> None:
    all_bad = look(what, looked(0, BAD))
    assert (all_bad.status, all_bad.out) == (1, "k\n")
    assert all_bad.err.splitlines() == [
        "streamjoin: 3 bad records: amount: 'x' is not an int32",
        "streamjoin: 1 bad record: k: expected an int32",
        "streamjoin: no row can be used: 4 records are bad",
    ]
    some_bad = look(what, looked(2, BAD))
    assert (some_bad.status, some_bad.out) == (0, "k\n1\n1\n")
    assert some_bad.err.splitlines() == all_bad.err.splitlines()[:2]
    as_json = look(what, looked(0, BAD), "-o", "json")
    assert (as_json.status, as_json.json()["bad_records"]) == (1, BAD)
    assert as_json.err == all_bad.err.splitlines()[2] + "\n"
    for nothing in (looked(0, {}), looked(1, {})):
        assert (look(what, nothing).status, look(what, nothing).err) == (0, "")


@pytest.mark.parametrize("what", ["streams", "relations"])
def test_a_given_column_that_no_row_has_is_told(what: str, look: Callable[..., Any]) -> None:
    columns = [{"name": name, "type": "string"} for name in ("customer", "custmer", "other")]
    answer = looked(2, {}) | {"columns": columns, "rows": [["ada", None, None], [None, None, None]]}
    spec = "source: jsonl\nschema: {customer: string, custmer: string}\n"
    said = look(what, answer, stdin=spec)
    assert (said.status, said.out.splitlines()[0].split()) == (0, ["customer", "custmer", "other"])
    assert said.err == (
        'streamjoin: note: column "custmer" has no value in the 2 rows shown; if the records have it, check how the '
        "schema spells it\n"
    )
    assert look(what, answer, "-o", "json", stdin=spec).err == ""
    assert look(what, answer).err == look(what, looked(0, {}), stdin=spec).err == ""
