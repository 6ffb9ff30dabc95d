"""An API that is asked to end while clients listen: at once, and without a word of failure in its log."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
from contextlib import suppress
from pathlib import Path
from urllib.request import urlopen

import pytest

from streamjoin.client import Client
from tests.servers.process import comes_true, free_ports

BIDS = {"source": "generator", "kind": "nexmark.bid", "time": "ts"}
QUERY = "SELECT ONLINE auctions.id FROM auctions, bids WHERE auctions.id = bids.auction WITHIN 10 SECONDS"


@pytest.mark.slow
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_whoever_listens_delays_no_end_and_leaves_no_stack(number: signal.Signals, tmp_path: Path) -> None:
    (port,) = free_ports(1)
    address = f"http://127.0.0.1:{port}"
    rest = {name: value for name, value in os.environ.items() if not name.startswith("STREAMJOIN_")}
    mine = {"DATA": str(tmp_path / "data"), "PORT": str(port), "AUTH": "off", "REDIS_URL": "redis://127.0.0.1:1/0"}
    environment = {**rest, **{f"STREAMJOIN_{name}": value for name, value in mine.items()}}
    heard: list[bytes] = []

    def listen() -> None:
        with suppress(OSError), urlopen(f"{address}/api/v1/jobs/wins/stream", timeout=60) as events:
            while line := events.readline():
                heard.append(line)
            heard.append(b"the end")

    def follow() -> None:
        with suppress(Exception), Client(address, deadline_s=1) as client:
            list(client.tail("wins"))

    with open(tmp_path / "log", "wb") as log:
        api = subprocess.Popen([sys.executable, "-m", "backend"], env=environment, stdout=log, stderr=log)
    try:
        with Client(address, deadline_s=60) as client:
            client.streams.create("bids", BIDS)
            client.streams.create("auctions", {**BIDS, "kind": "nexmark.auction"})
            client.jobs.create("wins", QUERY)
        listeners = [threading.Thread(target=act, daemon=True) for act in (listen, follow)]
        for thread in listeners:
            thread.start()
        assert comes_true(lambda: bool(heard) and "connection open" in (tmp_path / "log").read_text(), 20)
        api.send_signal(number)
        api.wait(4)  # uvicorn gives responses five seconds
    finally:
        api.kill()
        api.wait()
    for thread in listeners:
        thread.join(20)
    assert heard[-1] == b"the end"
    lines = [json.loads(line) for line in (tmp_path / "log").read_text().splitlines()]
    assert [line for line in lines if line["level"] == "error" or "exception" in line] == []
    assert lines[-1]["event"].startswith("Finished server process")
