"""Processes with disks of their own, as if they ran on another machine: each in a mount namespace.

Such a process sees the files that there are, and can write to none of them. One folder is empty for it and its children
alone, and is gone when they are: what it keeps there no other process finds, and nothing else can be kept.
"""

from __future__ import annotations

import functools
import subprocess
import tempfile
from pathlib import Path

SCRIPT = """\
set -e
own="$1"
shift
while read -r _ _ _ _ place _; do
    case "$place" in /proc | /proc/* | /sys | /sys/* | /dev | /dev/*) continue ;; esac
    mount -o remount,bind,ro "$(printf '%b' "$place")"
done < /proc/self/mountinfo
for place in "$own" /dev/shm; do
    mount -t tmpfs -o mode=0700 tmpfs "$place"
done
mkdir "$own/tmp"
cd "$own"
exec "$@"
"""


def apart(own: Path) -> list[str]:
    """What a command begins with that is to run apart, in `own`, where it finds nothing but an empty folder `tmp`.

    Args:
        own: a folder that is there.
    """
    return ["unshare", "--mount", "--propagation", "private", "sh", "-c", SCRIPT, "sh", str(own)]


def variables(own: Path) -> dict[str, str]:
    """By which programs that run apart keep what they have in `own`."""
    return {"TMPDIR": f"{own}/tmp", "HOME": str(own), "XDG_CACHE_HOME": f"{own}/tmp", "SPARK_LOCAL_DIRS": f"{own}/tmp"}


def java_options(own: Path) -> str:
    """As `variables`, for Java."""
    return f"-Djava.io.tmpdir={own}/tmp -XX:-UsePerfData"


def inside(pid: int, path: Path) -> Path:
    """What a process sees at `path`, while it runs."""
    return Path(f"/proc/{pid}/root{path}")


@functools.cache
def refusal() -> str | None:
    """Why nothing can run apart on this machine; None if it can."""
    with tempfile.TemporaryDirectory(prefix="streamjoin-apart-") as folder:
        try:
            command = [*apart(Path(folder)), "true"]
            done = subprocess.run(command, capture_output=True, text=True, timeout=30, check=False)
        except FileNotFoundError as missing:
            return f"{missing.filename} is not installed"
    return f"mount namespaces are refused here: {done.stderr.strip()[-200:]}" if done.returncode else None
