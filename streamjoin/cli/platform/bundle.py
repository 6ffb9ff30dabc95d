"""The archive that `streamjoin support-bundle` writes. If one part is missing, it says so and holds the others."""

from __future__ import annotations

import json
import os
import platform
import sys
import zipfile
from collections.abc import Callable, Sequence
from importlib.metadata import distributions
from pathlib import Path
from typing import Any

from streamjoin.cli.platform.common import Where
from streamjoin.cli.platform.masked import masked_settings, masked_text, secrets_of
from streamjoin.errors import InputError, StreamJoinError

LOG_BYTES_MAX = 1 << 20
LOGS_MAX = 200
EVENTS_MAX = 1000


def write_bundle(
    file: Path, read_settings: Callable[[], Any], checks: Callable[[Callable[[], Any]], Sequence[Any]], where: Where
) -> dict[str, str]:
    """Write it; returns what each part has, or why it is missing.

    Args:
        read_settings: as `streamjoin up` reads them, raising `InputError`.
        checks: what doctor looks at, of what reads the settings.
    Raises:
        InputError: there is such a file already.
    """
    said: dict[str, str] = {}
    try:
        settings = read_settings()
    except InputError as wrong:
        settings = None
        said["settings.json"] = str(wrong)
    secrets = secrets_of(settings) if settings is not None else []
    try:
        made = os.open(file, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)  # whoever made it decides who reads it
    except FileExistsError:
        raise InputError(f"{file} is there already; name another file") from None
    with os.fdopen(made, "wb") as opened, zipfile.ZipFile(opened, "w", zipfile.ZIP_DEFLATED) as archive:

        def add(name: str, text: str, what: str) -> None:
            archive.writestr(name, masked_text(text, secrets))
            said[name] = what

        def add_json(name: str, value: Any, what: str) -> None:
            add(name, json.dumps(value, indent=1, default=str), what)

        add_json("versions.json", versions(), "versions")
        add_json("doctor.json", [check.to_json() for check in checks(read_settings)], "what doctor found")
        if settings is not None:
            add_json("settings.json", masked_settings(settings), "settings, secrets masked")
            logs = find_logs(Path(settings.data))
            for log in logs:
                add(str(Path("logs") / log.relative_to(settings.data)), end_of(log), "the end of a log")
            said["logs"] = f"{len(logs)} logs"
        try:
            with where.client() as client:
                events = [event for _, event in zip(range(EVENTS_MAX), client.events(), strict=False)]
                add_json("events.json", events, f"{len(events)} events")
                add_json("jobs.json", list(client.jobs.list()), "jobs")
                add_json("ready.json", client.call("GET", "/readyz"), "what the platform is ready for")
        except StreamJoinError as failure:
            add("platform.txt", f"{failure}\n", "the platform did not answer")
        archive.writestr("parts.json", json.dumps(said, indent=1))
    return said


def versions() -> dict[str, Any]:
    """Of the machine, Python and all packages."""
    packages = {found.metadata["Name"]: found.version for found in distributions() if found.metadata["Name"]}
    return {
        "machine": platform.platform(),
        "python": sys.version,
        "packages": dict(sorted(packages.items(), key=lambda item: item[0].lower())),
    }


def find_logs(data: Path) -> list[Path]:
    """The newest logs of the platform and of its jobs."""
    found = [
        path
        for pattern in ("logs/*.log", "jobs/*/*.log", "jobs/*/*/spark.log")
        for path in data.glob(pattern)
        if path.is_file() and not path.is_symlink()
    ]
    return sorted(found, key=lambda path: path.stat().st_mtime, reverse=True)[:LOGS_MAX]


def end_of(log: Path) -> str:
    """The last part of a log."""
    with log.open("rb") as opened:
        opened.seek(0, 2)
        opened.seek(max(0, opened.tell() - LOG_BYTES_MAX))
        return opened.read().decode("utf-8", "replace")
