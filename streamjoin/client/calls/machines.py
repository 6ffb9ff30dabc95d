"""Machines whose workers run jobs."""

from __future__ import annotations

from streamjoin.client.calls.asking import API, pages
from streamjoin.client.retry import Patience
from streamjoin.client.shapes import Machine
from streamjoin.client.steps import Flow


def list_machines(patience: Patience) -> Flow[Machine]:
    """All machines that said in the last day that they run jobs, by name."""
    yield from pages(patience, f"{API}/machines", key="name")
