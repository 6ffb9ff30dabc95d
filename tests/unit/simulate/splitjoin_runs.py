"""Histories, oracles and seeded settings for the tests of SplitJoin."""

from __future__ import annotations

import random
from collections.abc import Sequence
from typing import Any

from simulate.network import Earliest, Scheduler, Shuffled
from simulate.splitjoin import check
from simulate.splitjoin.distribution import Input
from simulate.splitjoin.messages import Message, Ordering, Precision
from simulate.splitjoin.system import SplitJoin
from simulate.splitjoin.window import CountWindow, TimeWindow, Window
from simulate.stream import Stream
from streamjoin.operators.reference import count_window_join, time_window_join

R, S = Stream.R, Stream.S


def always(r: Any, s: Any) -> bool:
    return True


def never(r: Any, s: Any) -> bool:
    return False


def close(r: int, s: int) -> bool:
    return abs(r - s) <= 2


def sequence(streams: str, values: Sequence[int] | None = None, times: Sequence[int] | None = None) -> list[Input]:
    """One tuple a letter."""
    return [
        Input(Stream(each), values[at] if values else at, times[at] if times else None)
        for at, each in enumerate(streams)
    ]


def history(random_: random.Random, size: int, by_time: bool = False) -> list[Input]:
    """Both streams mixed; times stand still or jump, also by the windows' lengths."""
    time_us, inputs = 0, []
    for _ in range(size):
        time_us += random_.choice([0, 0, 1, 2, 5, 10])
        inputs.append(Input(random_.choice([R, S]), random_.randrange(6), time_us if by_time else None))
    return inputs


def expected(inputs: Sequence[Input | Precision], window: Window, match: Any) -> list[tuple[int, int]]:
    """The nested loop's pairs."""
    rows = [(each.stream, {"ts": each.time_us, "v": each.value}) for each in inputs if isinstance(each, Input)]

    def matches(r: Any, s: Any) -> bool:
        return bool(match(r["v"], s["v"]))

    if isinstance(window, CountWindow):
        return count_window_join([(stream.lower(), row) for stream, row in rows], matches, window.rows)
    assert isinstance(window, TimeWindow)
    sides = [[row for stream, row in rows if stream is each] for each in (R, S)]
    return time_window_join(*sides, matches, window.length_us, window.length_us)


def played(
    inputs: Sequence[Input | Precision], window: Window, match: Any = always, cores: int = 4, **settings: Any
) -> SplitJoin:
    """A whole run, by the time of its channels if no scheduler is named."""
    scheduler: Scheduler = settings.pop("scheduler", None) or Earliest()
    return SplitJoin(scheduler, cores, window, match, **settings).join(inputs)


def drawn(seed: int) -> tuple[SplitJoin, list[Input], Window, Any]:
    """Any settings and any history."""
    random_ = random.Random(seed)
    window: Window = random_.choice(
        [CountWindow(random_.randint(1, 8)), TimeWindow(random_.choice([0, 3, 10, 30]), random_.random() < 0.3)]
    )
    ordering = random_.choice(list(Ordering))
    precision = Precision(
        ordering,
        tuples_per_star=random_.choice([1, 1, 3]) if ordering is Ordering.OUTER else 1,
        rows_per_star=random_.choice([1, 1, 2]) if ordering is Ordering.INNER else 1,
    )
    match = random_.choice([always, close, close])
    run = SplitJoin(
        Shuffled(seed),
        random_.randint(1, 5),
        window,
        match,
        precision,
        fan_out=random_.choice([2, 3]),
        fan_in=random_.choice([2, 3]),
        run=random_.choice([1, 1, 2]),
        buffer=random_.choice([None, 1, 2]),
    )
    return run, history(random_, random_.randint(4, 18), window.by_time), window, match


def messages(run: SplitJoin) -> list[Message]:
    """What came out."""
    return [left.message for left in run.output]


def processed(inputs: Sequence[Input | Precision]) -> dict[Stream, int]:
    """How many tuples of each stream there are."""
    return {each: sum(isinstance(i, Input) and i.stream is each for i in inputs) for each in Stream}


def complaints(run: SplitJoin, inputs: Sequence[Input], window: Window, match: Any) -> list[str]:
    """All checks that the run's settings promise."""
    output, precision = messages(run), run.precision
    found = [] if run.ended else ["it did not come to its end"]
    found += check.same_sequence(run.network.log, run.regions)
    found += check.exactly_once(run.pairs, expected(inputs, window, match))
    if precision.ordering is not Ordering.NONE:
        found += check.outer_order(output, precision.tuples_per_star)
        found += check.stars_divide(output, processed(inputs), precision.tuples_per_star)
    elif run.stars:
        found.append("stars without an order")
    if precision.by_partner:
        found += check.inner_order(output, group_rows(run))
    if precision.ordering is Ordering.TOTAL:
        found += check.total_order(output)
    return found


def group_rows(run: SplitJoin) -> int:
    """Ranks in a group of stored tuples; 1 is strict."""
    turn = next(iter(run.regions.values())).turn
    rounds = -(-run.precision.rows_per_star // turn.run)
    return 1 if rounds == 1 else rounds * turn.cores * turn.run
