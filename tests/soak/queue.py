"""The parts of the soak, each of at most twenty minutes on two idle cores, and what they add up to."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Final

PART_S_MAX: Final = 20 * 60
"""What a part may take on two cores with nothing else to do."""
SHARES: Final = 16
"""The tests marked `soak` run in this many parts."""
GOALS: Final[Mapping[str, int]] = {
    "tests": SHARES,
    "seeds of aligned": 50_000,
    "seeds of biclique": 50_000,
    "seeds of coordinated": 50_000,
    "seeds of handshake": 50_000,
    "seeds of ring": 50_000,
    "seeds of splitjoin": 50_000,
    "kills over a store": 1_000,
    "kills on Spark": 1_000,
    "machines lost": 200,
    "conditions": 100_000,
    "conditions on Spark": 500,
    "minutes of dying parts": 120,
}
"""What all parts together come to."""


@dataclass(frozen=True)
class Part:
    """One call of a module, whose exit status is 0 if everything was right.

    Args:
        name: of its record; two parts never share one.
        what, amount: what it adds to which goal.
        module, arguments: the call.
        after: the part that must have passed before it, for it goes on with what that left.
    """

    name: str
    what: str
    amount: int
    module: str
    arguments: tuple[str, ...] = field(default=())
    after: str | None = None


def _parts() -> Iterator[Part]:
    for number in range(SHARES):
        chosen = ("-q", "-n", "2", "--dist", "worksteal", "-m", "soak", "--share", f"{number + 1}/{SHARES}")
        yield Part(f"tests-{number}", "tests", 1, "pytest", chosen)
    for protocol in ("aligned", "biclique", "coordinated", "handshake", "ring", "splitjoin"):
        for first in (0, 25_000):
            arguments = (protocol, "--first", str(first), "--seeds", "25000")
            yield Part(f"seeds-{protocol}-{first}", f"seeds of {protocol}", 25_000, "tests.soak.seeds", arguments)
    for number in range(4):
        arguments = ("--kills", "250", "--seed", str(10_000 * number))
        yield Part(f"store-{number}", "kills over a store", 250, "tests.conformance.stores.soak", arguments)
        yield Part(f"spark-{number}", "kills on Spark", 250, "tests.soak.crashes", arguments)
    for number in range(20):
        arguments = ("--kills", "10", "--seed", str(number))
        yield Part(f"lost-{number}", "machines lost", 10, "tests.soak.lost", arguments)
    for first in range(0, 100_000, 25_000):
        arguments = ("--conditions", "25000", "--seed", str(first))
        yield Part(f"conditions-{first}", "conditions", 25_000, "tests.conformance.typed.soak", arguments)
    for first in (0, 250):
        arguments = ("--spark", "250", "--seed", str(first))
        yield Part(f"conditions-spark-{first}", "conditions on Spark", 250, "tests.conformance.typed.soak", arguments)
    for number in range(8):
        yield Part(
            f"dying-{number}", "minutes of dying parts", 15, "tests.soak.dying",
            ("--minutes", "15", "--seed", str(number)), after=f"dying-{number - 1}" if number else None,
        )  # fmt: skip


PARTS: Final = tuple(_parts())
