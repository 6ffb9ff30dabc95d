"""Whether a container does its work: `healthcheck.py api | worker | reconciler`; exit status 0 or 1."""

from __future__ import annotations

import os
import sys
import urllib.error
import urllib.request

import psutil

from backend.settings import read_settings

PATIENCE_S = 3.0
DATA = "STREAMJOIN_DATA"
MODULES = {"worker": "worker.app", "reconciler": "worker.reconcile"}


def api() -> str | None:
    """What is wrong with the API; it must answer, and with it the catalog."""
    try:
        with urllib.request.urlopen(f"http://127.0.0.1:{read_settings().port}/readyz", timeout=PATIENCE_S):
            return None
    except (urllib.error.URLError, OSError) as failure:
        return f"the API does not answer: {failure}"


def process(module: str) -> str | None:
    """What is wrong with a worker: it must run, and reach Redis, through which it gets its work."""
    import redis

    if not any(_is_ours(running, module) for running in psutil.process_iter(["cmdline", "environ"])):
        return f"no process runs {module}"
    try:
        url = read_settings().redis_url
        with redis.Redis.from_url(url, socket_connect_timeout=PATIENCE_S, socket_timeout=PATIENCE_S) as client:
            client.ping()
    except redis.RedisError as failure:
        return f"Redis does not answer: {type(failure).__name__}"
    return None


def _is_ours(running: psutil.Process, module: str) -> bool:
    """Whether a process runs a module for the same data; machines that are no containers may run several platforms."""
    command, variables = running.info["cmdline"] or (), running.info["environ"] or {}
    return module in command and variables.get(DATA) == os.environ.get(DATA)


def main() -> None:
    """Look, and say what is wrong."""
    what = sys.argv[1]
    if wrong := api() if what == "api" else process(MODULES[what]):
        sys.exit(wrong)


if __name__ == "__main__":
    main()
