"""A folder with two small streams, and a join file over them that can be changed field by field."""

from __future__ import annotations

import copy
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml

from streamjoin.spec.joinfile import parse
from streamjoin.spec.prepare import Bound, bind

ORDERS = """ts,id,k,price
2026-01-01T00:00:00Z,1,1,9.5
2026-01-01T00:00:01Z,2,2,3.25
"""
PAYMENTS = """ts,id,k
2026-01-01T00:00:01Z,10,1
2026-01-01T00:00:05Z,11,2
"""
GOOD: dict[str, Any] = {
    "streams": {
        "orders": {"source": "csv", "path": "data/orders", "time": "ts", "delay": "0s"},
        "payments": {"source": "csv", "path": "data/payments", "time": "ts", "delay": "2s"},
    },
    "query": "SELECT ONLINE orders.id AS order_id, payments.id AS payment_id FROM orders, payments "
    "WHERE orders.k = payments.k WITHIN 10 SECONDS",
    "results": {"jsonl": "-"},
    "run": {"slots": 2, "checkpoint": "state"},
}

GONE = object()
"""In a change: the field is not there."""

Changes = dict[str, Any]
Try = Callable[[Changes], Bound]


class _NoAliases(yaml.SafeDumper):
    def ignore_aliases(self, data: Any) -> bool:
        return True


def changed(changes: Changes) -> str:
    """The text of the good join file with fields changed; field names are separated by slashes."""
    content = copy.deepcopy(GOOD)
    for field, value in changes.items():
        *parents, last = field.split("/")
        place = content
        for parent in parents:
            place = place.setdefault(parent, {})
        if value is GONE:
            del place[last]
        else:
            place[last] = value
    return yaml.dump(content, Dumper=_NoAliases, sort_keys=False)


@pytest.fixture(scope="session")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where the join file is, with its data."""
    root = tmp_path_factory.mktemp("join")
    for name, text in (("orders", ORDERS), ("payments", PAYMENTS)):
        (root / "data" / name).mkdir(parents=True)
        (root / "data" / name / "1.csv").write_text(text)
    return root


@pytest.fixture
def validate(folder: Path) -> Try:
    """What `streamjoin validate` does with the good file, changed."""
    return lambda changes: bind(parse(changed(changes), base=folder))


@pytest.fixture
def text_of() -> Callable[[Changes], str]:
    """The changed file's text."""
    return changed


@pytest.fixture
def gone() -> object:
    """Marks a field to take away."""
    return GONE
