"""The real app and the stand-in, each behind a real server."""

from __future__ import annotations

import io
import json
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from backend.app import create_app
from backend.catalog.migrate import migrate
from backend.settings import Settings
from streamjoin.cli import commands as cli
from streamjoin.cli.platform import common
from streamjoin.client import Client
from streamjoin.intake import rejected
from streamjoin.intake.deadletter import DeadLetter, write_dead_letters
from streamjoin.spec.job import dead_letters_folder
from tests.client.serve import Server, serve
from tests.client.standin import StandIn


@dataclass(frozen=True)
class Said:
    status: int
    out: str
    err: str

    def json(self) -> Any:
        return json.loads(self.out)


Command = Callable[..., Said]


@pytest.fixture(autouse=True)
def environment(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nobody's own settings reach the tests."""
    for name in ("STREAMJOIN_HOST", "STREAMJOIN_PORT", "STREAMJOIN_API_KEY"):
        monkeypatch.delenv(name, raising=False)


@pytest.fixture(scope="module")
def platform(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """The real app, without auth and without a worker."""
    folder = tmp_path_factory.mktemp("platform")
    (folder / "files").mkdir()
    settings = Settings(
        data=folder / "data", auth="off", redis_url="redis://127.0.0.1:1/0", allowed_paths=(folder / "files",)
    )
    migrate(settings.catalog)
    with serve(create_app(settings)) as server:
        yield server


@pytest.fixture(scope="module")
def customers(platform: Server) -> dict[str, Any]:
    """What to register as a relation: three rows in a file that the platform may read."""
    path = platform.app.state.context.settings.allowed_paths[0] / "customers.parquet"
    pq.write_table(pa.table({"id": [1, 2, 3], "name": ["Ada", "Bob", "Bob"]}), path)
    return {"source": "parquet", "path": str(path)}


@pytest.fixture
def put_aside(platform: Server) -> Callable[..., None]:
    """What a driver does with a batch's bad rows: `put_aside(job_id, batch, reason, *texts)`."""

    def keep(job_id: str, batch: int, reason: str, *texts: str) -> None:
        folder = dead_letters_folder(platform.app.state.context.settings.checkpoint_folder(job_id, 0))
        file = rejected.file_of(folder, batch, "0-0:0")
        letters = [
            DeadLetter("bids", "1.csv", at, reason, "why", text.encode(), "line") for at, text in enumerate(texts, 1)
        ]
        write_dead_letters(file, letters, batch, 0)
        counts = {"bids": {reason: len(texts)}}
        rejected.add(folder, batch, counts, [rejected.Taken(file, counts)], sync=False)

    return keep


@pytest.fixture
def client(platform: Server) -> Iterator[Client]:
    """A client of the real app."""
    with Client(platform.host) as client:
        yield client


@pytest.fixture
def stand_in() -> StandIn:
    """What the stand-in is to do."""
    return StandIn()


@pytest.fixture
def server(stand_in: StandIn) -> Iterator[Server]:
    """The stand-in, behind a server."""
    with serve(stand_in.app()) as server:
        yield server


@pytest.fixture
def patient(server: Server) -> Iterator[Client]:
    """A client of the stand-in, with little time."""
    with Client(server.host, "sj_key", timeout_s=2, deadline_s=5) as client:
        yield client


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty working directory."""
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
def command(monkeypatch: pytest.MonkeyPatch, capfdbinary: pytest.CaptureFixture[bytes]) -> Command:
    """`streamjoin`, in this process."""

    monkeypatch.setattr(common, "REACH_S", 0.3)

    def call(*arguments: str, stdin: str = "") -> Said:
        monkeypatch.setattr(sys, "argv", ["streamjoin", *arguments])
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(stdin.encode())))
        status = 0
        try:
            cli.main()
        except SystemExit as ended:
            status = int(ended.code or 0)
        out, err = (text.decode() for text in capfdbinary.readouterr())
        assert "Traceback" not in out + err and "mistake in StreamJoin" not in err, err
        return Said(status, out, err)

    return call


@pytest.fixture
def streamjoin(command: Command, platform: Server, monkeypatch: pytest.MonkeyPatch) -> Command:
    """The same, on the real app."""
    monkeypatch.setenv("STREAMJOIN_HOST", platform.host)
    return command
