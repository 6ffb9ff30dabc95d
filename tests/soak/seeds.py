"""Many seeds of a simulated protocol: `python -m tests.soak.seeds splitjoin --first 0 --seeds 10000`.

Each seed is a history, a setting and a schedule, and is compared with a nested loop, as in `tests/unit/simulate`. The
first that is wrong ends the run with its message log.
"""

from __future__ import annotations

import argparse
import multiprocessing
import sys
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor, as_completed

PIECE = 100
"""Seeds that one process is given at a time."""


def _biclique(seeds: range) -> None:
    from tests.unit.simulate.test_biclique_protocol import test_all_seeds_are_exact_and_order_consistent as holds

    holds(seeds)


def _splitjoin(seeds: range) -> None:
    from tests.unit.simulate.test_splitjoin_seeds import holds

    for seed in seeds:
        holds(seed)


def _handshake(seeds: range) -> None:
    from tests.unit.simulate.test_handshake_exact import one_seed

    for seed in seeds:
        one_seed(seed, (None, 20.0)[seed % 2])


def _ring(seeds: range) -> None:
    from tests.unit.simulate.test_ring_protocol import run

    for seed in seeds:
        is_right, played = run(seed, in_flight=(1, 2, 6)[seed % 3])
        assert is_right, seed
        assert not any(node.seen or node.sent_on for node in played.nodes), f"seed {seed}: something was left behind"


def _aligned(seeds: range) -> None:
    from tests.unit.simulate.test_replicated import run_aligned

    for seed in seeds:
        assert run_aligned(seed)[0], seed


def _coordinated(seeds: range) -> None:
    from tests.unit.simulate.test_replicated import run_coordinated

    for seed in seeds:
        assert run_coordinated(seed)[0], seed


PROTOCOLS: dict[str, Callable[[range], None]] = {
    "aligned": _aligned,
    "biclique": _biclique,
    "coordinated": _coordinated,
    "handshake": _handshake,
    "ring": _ring,
    "splitjoin": _splitjoin,
}


def play(protocol: str, seeds: range) -> int:
    """Play some seeds; how many.

    Raises:
        AssertionError: one of them is wrong; with its number.
    """
    PROTOCOLS[protocol](seeds)
    return len(seeds)


def pieces(first: int, seeds: int) -> Iterator[range]:
    """All seeds, a piece at a time."""
    for start in range(first, first + seeds, PIECE):
        yield range(start, min(start + PIECE, first + seeds))


def soak(protocol: str, first: int, seeds: int, processes: int) -> None:
    """Play all; how far it is goes to stderr."""
    begun_s, done = time.monotonic(), 0
    with ProcessPoolExecutor(processes, multiprocessing.get_context("spawn")) as pool:
        running = [pool.submit(play, protocol, piece) for piece in pieces(first, seeds)]
        try:
            for future in as_completed(running):
                done += future.result()
                if done % (10 * PIECE) == 0:
                    seconds = time.monotonic() - begun_s
                    print(f"{done:,} of {seeds:,} seeds of {protocol}, {seconds:.0f} s", file=sys.stderr, flush=True)
        except BaseException:
            pool.shutdown(cancel_futures=True)
            raise


def main() -> int:
    """The command line."""
    parser = argparse.ArgumentParser(prog="python -m tests.soak.seeds")
    parser.add_argument("protocol", choices=PROTOCOLS)
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--seeds", type=int, default=50_000)
    parser.add_argument("--processes", type=int, default=2)
    asked = parser.parse_args()
    soak(asked.protocol, asked.first, asked.seeds, asked.processes)
    print(f"{asked.seeds:,} seeds of {asked.protocol} from {asked.first} on are right")
    return 0


if __name__ == "__main__":
    sys.exit(main())
