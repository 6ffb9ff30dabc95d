"""A real API process for tests: `python -m tests.backend.live_server`, set up by STREAMJOIN_ variables."""

from __future__ import annotations

import json
import logging
import os
import sys
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any
from urllib.error import URLError
from urllib.request import urlopen

from backend.settings import Settings, read_settings
from tests.servers.process import ServerProcess, free_ports

START_S = 40.0


class LiveServer(ServerProcess):
    """One run of the API over a folder.

    Args:
        limits: fields of `Limits` that are to differ.
    """

    def __init__(self, settings: Settings, log: Path, limits: Mapping[str, Any] | None = None) -> None:
        self.port = settings.port
        given = {**settings.environment(), **{f"LIMIT_{name}": str(value) for name, value in (limits or {}).items()}}
        command = ["env", *(f"{name}={value}" for name, value in given.items())]
        super().__init__("the API", [*command, sys.executable, "-m", "tests.backend.live_server"], log)
        self.url = f"http://127.0.0.1:{self.port}"
        self.wait_until(self._lives, "does not answer", START_S)

    def figures(self) -> dict[str, Any]:
        """What the server's hub holds."""
        with urlopen(f"{self.url}/figures", timeout=30) as answer:
            found = json.load(answer)
        assert isinstance(found, dict)
        return found

    def _lives(self) -> bool:
        try:
            with urlopen(f"{self.url}/livez", timeout=2) as answer:
                return bool(answer.status == 200)
        except (URLError, OSError):
            time.sleep(0.05)
            return False


def live_settings(folder: Path, **values: Any) -> Settings:
    """Settings of a server of its own."""
    from tests.backend.results_job import settings_in

    return settings_in(folder, port=free_ports(1)[0], **values)


def main() -> None:
    """Serve."""
    from backend.logs import set_up_logs
    from backend.results.limits import Limits
    from backend.results.service import service_of
    from backend.serve import serve
    from tests.backend.results_job import make_app

    settings = read_settings()
    set_up_logs("api")
    logging.getLogger("streamjoin.requests").setLevel(logging.WARNING)
    defaults = Limits()
    given = {
        name.removeprefix("LIMIT_"): type(getattr(defaults, name.removeprefix("LIMIT_")))(value)
        for name, value in os.environ.items()
        if name.startswith("LIMIT_")
    }
    app = make_app(settings, Limits(**given))
    app.add_api_route("/figures", lambda: service_of(app.state.context).hub.figures())
    serve(app, settings)


if __name__ == "__main__":
    main()
