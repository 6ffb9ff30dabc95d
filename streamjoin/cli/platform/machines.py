"""`streamjoin machines`."""

from __future__ import annotations

from streamjoin.cli.platform.common import HERE, Output, Where, show

COLUMNS = ("name", "takes_jobs", "jobs", "free_bytes", "seen_at", "folder")


def machines(*, output: Output = "table", where: Where = HERE) -> None:
    """List the machines whose workers run jobs, by name."""
    with where.client() as client:
        show(list(client.machines.list()), output, COLUMNS)
