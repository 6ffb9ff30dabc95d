"""What the simulated machines' steps take: measured on this machine, and a network that is assumed.

The predicate is the paper's (section 8.1): two images are similar if enough of their pixels are, by red, green and
blue. It is written in NumPy, as a user would write it.
"""

from __future__ import annotations

import socket
import time
from collections import deque
from collections.abc import Mapping
from typing import Any

import numpy as np

from benchmarks.curves.units import best_s
from simulate.ring.sizes import HEADER_BYTES
from simulate.timed import UnitCosts
from streamjoin.operators.costs.psp import StepTimes

PIXELS = (5_000, 10_000, 20_000)
"""The paper's small, middle and large images."""
CHANNELS = 3
TOLERANCE, SHARE = 32, 0.5
"""How far a channel may be off, and how many pixels must be near."""
HOP_NS = 100_000.0
LINK_BYTE_NS = 8.0
"""Of a gigabit network, as the paper's: assumed, as there is one machine here."""


def images(count: int, pixels: int) -> np.ndarray:
    """Variations of a few scenes, so that some are similar; uint8, of the shape (count, pixels, channels)."""
    chosen = np.random.default_rng(1)
    scenes = chosen.integers(0, 256, (4, pixels, CHANNELS))
    noise = chosen.integers(-24, 25, (count, pixels, CHANNELS))
    return np.clip(scenes[np.arange(count) % len(scenes)] + noise, 0, 255).astype(np.uint8)


def similar(one: np.ndarray, other: np.ndarray) -> bool:
    """Whether so many pixels of two images are near each other in all channels."""
    near = np.abs(one.astype(np.int16) - other) <= TOLERANCE
    return bool(np.count_nonzero(near[:, 0] & near[:, 1] & near[:, 2]) >= SHARE * len(one))


def measure(quick: bool) -> dict[str, Any]:
    """On this machine, now; ns, and by pixels what a comparison takes."""
    sends = 200 if quick else 20_000
    bare, laden = (send_ns(size, sends) for size in (HEADER_BYTES, HEADER_BYTES + PIXELS[0] * CHANNELS))
    byte = max(0.0, laden - bare) / (PIXELS[0] * CHANNELS)
    insert, purge = state_ns(1_000 if quick else 100_000)
    return {
        "comparison": {str(pixels): comparison_ns(pixels, 4 if quick else 64) for pixels in PIXELS},
        "probe": probe_ns(1_000 if quick else 100_000),
        "insert": insert,
        "purge": purge,
        "message": max(0.0, bare - HEADER_BYTES * byte),
        "byte": byte,
        "hop": HOP_NS,
        "link_byte": LINK_BYTE_NS,
    }


def comparison_ns(pixels: int, count: int) -> float:
    """Each of `count` images with each."""
    stored = images(count, pixels)

    def all_pairs() -> None:
        for one in stored:
            for other in stored:
                similar(one, other)

    return best_s(all_pairs) / count**2 * 1e9


def probe_ns(times: int) -> float:
    """To take up a row and go through a state in which there is nothing."""
    state: deque[np.ndarray] = deque()
    image = images(1, PIXELS[0])[0]

    def scan(probe: np.ndarray) -> list[np.ndarray]:
        return [stored for stored in state if similar(probe, stored)]

    def all_probes() -> None:
        for _ in range(times):
            scan(image)

    return best_s(all_probes) / times * 1e9


def state_ns(times: int) -> tuple[float, float]:
    """To store a row, and to drop the oldest."""
    state: deque[int] = deque()

    def insert() -> None:
        for number in range(times):
            state.append(number)

    def purge() -> None:
        for _ in range(times):
            state.popleft()

    def both() -> None:
        insert()
        purge()

    insert_s = best_s(insert)
    return insert_s / times * 1e9, max(0.0, best_s(both) - insert_s) / times * 1e9


def send_ns(size: int, times: int) -> float:
    """Processor time of a message at both of its ends, on a connection of this machine."""
    one, other = socket.socketpair()
    message, room = bytes(size), bytearray(size)
    with one, other:
        one.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 4 * size + 65_536)
        begun_s = time.process_time()
        for _ in range(times):
            one.sendall(message)
            other.recv_into(room, size, socket.MSG_WAITALL)
        return (time.process_time() - begun_s) / times * 1e9


def unit_costs(measured: Mapping[str, Any], pixels: int = PIXELS[0]) -> UnitCosts:
    """Of machines that join images of so many pixels."""
    single = {name: value for name, value in measured.items() if name != "comparison"}
    return UnitCosts(comparison=measured["comparison"][str(pixels)], **single)


def step_times(costs: UnitCosts, tuple_bytes: int) -> StepTimes:
    """The same as the cost model has them: a tuple is one row, which is sent with its message.

    A simulated node stores what it takes in, as the paper's does, so each node that a tuple leaves has stored it, too.
    """
    size = HEADER_BYTES + tuple_bytes
    return StepTimes(
        join=costs.comparison / 1e9,
        send=(costs.message + costs.byte * size) / 1e9,
        hop=(costs.hop + costs.link_byte * size) / 1e9,
        purge=(costs.insert + costs.purge) / 1e9,
    )
