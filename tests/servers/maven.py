"""Jars of the servers under test, fetched once by Maven and kept in a cache folder.

A folder next to this file holds a `pom.xml` that names the jars and their versions. Its runtime dependencies land in
`<cache>/jars/<folder name>-<hash of the pom>`, so that a changed pom gets a folder of its own and a folder that exists
is complete. The cache is `$STREAMJOIN_CACHE`, or `~/.cache/streamjoin`.
"""

from __future__ import annotations

import fcntl
import hashlib
import os
import re
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

FETCH_S_MAX = 600.0


class ServerUnavailable(Exception):
    """A server cannot be started on this machine.

    Args:
        reason: what is missing, such as "java is not on the PATH".
        how_to_get_it: what the reader can do about it.
    """

    def __init__(self, reason: str, how_to_get_it: str) -> None:
        super().__init__(f"{reason}; {how_to_get_it}")
        self.reason = reason
        self.how_to_get_it = how_to_get_it


def jars(pom_dir: Path) -> Path:
    """The folder with the jars that `pom_dir/pom.xml` asks for.

    The first call for a pom runs Maven and may take minutes; later ones only look. Any number of processes may call
    it at the same time: one fetches, the others wait for it.

    Raises:
        ServerUnavailable: java or mvn is missing, or a jar cannot be fetched.
    """
    # Also when the jars are there already: without java they are of no use to the caller.
    require_command("java", "install a Java runtime, version 17 or later")
    pom = pom_dir / "pom.xml"
    pom_hash = hashlib.sha256(pom.read_bytes()).hexdigest()[:12]
    folder = cache_folder() / "jars" / f"{pom_dir.name}-{pom_hash}"
    if folder.is_dir():
        return folder
    folder.parent.mkdir(parents=True, exist_ok=True)
    with lock(folder.with_name(f"{folder.name}.lock")):
        # Another process may have fetched them while this one waited for the lock.
        if not folder.is_dir():
            fetch(pom, folder)
    return folder


def cache_folder() -> Path:
    """Where downloads are kept between test runs. It may not exist yet."""
    configured = os.environ.get("STREAMJOIN_CACHE")
    # Absolute, for Maven takes a relative path from the folder of the pom.
    return Path(configured or Path.home() / ".cache" / "streamjoin").absolute()


def require_command(command: str, how_to_get_it: str) -> None:
    """Raise `ServerUnavailable` unless `command` is on the PATH."""
    if shutil.which(command) is None:
        raise ServerUnavailable(f"{command} is not on the PATH", how_to_get_it)


def fetch(pom: Path, folder: Path) -> None:
    """Let Maven copy the runtime dependencies of `pom` into `folder`, which appears complete or not at all."""
    require_command("mvn", "install Apache Maven, version 3.8 or later")
    with tempfile.TemporaryDirectory(prefix=f".{folder.name}-", dir=folder.parent) as scratch:
        complete = Path(scratch) / "jars"
        run_maven(pom, complete)
        complete.rename(folder)


def run_maven(pom: Path, output: Path) -> None:
    command = [
        *("mvn", "--batch-mode", "--quiet", "--file", str(pom)),
        *("dependency:copy-dependencies", "-DincludeScope=runtime", f"-DoutputDirectory={output}"),
    ]
    way_out = f"check the network and Maven's settings with: mvn --file {pom} dependency:resolve"
    try:
        run = subprocess.run(
            command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
            timeout=FETCH_S_MAX, check=False,
        )  # fmt: skip
    except subprocess.TimeoutExpired as error:
        reason = f"the jars of {pom} were not fetched within {FETCH_S_MAX:.0f} s"
        raise ServerUnavailable(reason, way_out) from error
    if run.returncode != 0:
        reason = f"Maven could not fetch the jars of {pom} ({first_error(run.stdout)})"
        raise ServerUnavailable(reason, way_out)


def first_error(maven_output: str) -> str:
    """The first thing Maven complains about, without its colours; the rest of its output repeats it."""
    plain = re.sub(r"\x1b\[[0-9;]*m", "", maven_output)
    complaint = re.search(r"^\[ERROR\] +(.+?)(?: -> \[Help 1\])?$", plain, re.MULTILINE)
    return complaint.group(1) if complaint else "it did not say why"


@contextmanager
def lock(path: Path) -> Iterator[None]:
    """Hold the lock file `path` alone, waiting for another process to let go. It is freed if this process dies."""
    with path.open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield
