"""What the processes of the join-biclique tell each other, and which of its protections are on."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import TypeAlias

Identity: TypeAlias = tuple[int, int]
"""(side, number) of a tuple."""


@dataclass(frozen=True, slots=True)
class Arrival:
    """A tuple that comes from outside.

    Args:
        at_us: when it reaches the shuffler.
        side: R or S of `streamjoin.plan.window`.
        number: from 0 in its stream.
        key: what the join compares.
    """

    at_us: int
    side: int
    number: int
    key: int


@dataclass(frozen=True, slots=True)
class StreamTuple:
    """An arrival that a shuffler has stamped.

    Args:
        time_us: the shuffler's clock when it arrived, the same on all copies (section 3.2.1).
    """

    side: int
    number: int
    key: int
    time_us: int

    @property
    def identity(self) -> Identity:
        """Which tuple it is."""
        return self.side, self.number


class Role(StrEnum):
    """What a unit does with a tuple."""

    STORE = "store"
    JOIN = "join"


Assign: TypeAlias = Callable[[StreamTuple], Sequence[tuple[str, Role]]]
"""The units that a tuple goes to: a pure function."""


@dataclass(frozen=True, slots=True)
class Plan:
    """Which units there are, and who gets what.

    Args:
        units: all that take part, also those that only join any more; each gets every signal.
        assign: where a tuple goes.
    """

    units: tuple[str, ...]
    assign: Assign


@dataclass(frozen=True, slots=True)
class Home:
    """Who keeps a tuple: in memory the unit that stores it, and on disk some of those that join it (section 3.5).

    Args:
        primary: the unit that stores it.
        holders: the units that keep a replica.
        dispatcher: who stamped it.
    """

    primary: str
    holders: tuple[str, ...]
    dispatcher: str


@dataclass(frozen=True, slots=True)
class Copy:
    """A tuple for one unit.

    Args:
        number: +1 for each message from this dispatcher to this unit, from 0; signals count too (Definition 3).
        stamp: the dispatcher's logical clock, the same on all copies.
        home: where the tuple is kept; None where there are no replicas.
    """

    number: int
    stamp: int
    tuple: StreamTuple
    role: Role
    home: Home | None = None


@dataclass(frozen=True, slots=True)
class Signal:
    """All tuples of its dispatcher with a smaller stamp have been sent (section 3.2.3).

    Args:
        last: the dispatcher leaves and sends nothing after it.
        newcomers: dispatchers whose stamps begin after this one.
    """

    number: int
    stamp: int
    last: bool = False
    newcomers: tuple[str, ...] = ()


Message: TypeAlias = Copy | Signal
"""What a dispatcher sends to a unit."""


@dataclass(frozen=True, slots=True)
class InputEnd:
    """From a shuffler to a dispatcher: it will send it nothing more."""


@dataclass(frozen=True, slots=True)
class Safe:
    """From a unit to a dispatcher: messages below `number` survive a crash of the unit (section 3.5)."""

    number: int


@dataclass(frozen=True, slots=True)
class Replay:
    """From a unit to a dispatcher: send what begins with `number` again (section 3.5)."""

    number: int


@dataclass(frozen=True, slots=True)
class Result:
    """A joined pair.

    Args:
        number: +1 for each result of its unit, from 0.
        r, s: the tuples' numbers in their streams.
    """

    number: int
    r: int
    s: int


@dataclass(frozen=True, slots=True)
class Hold:
    """From the manager to a dispatcher: say what your clock shows, and stamp nothing until you are told to switch."""


@dataclass(frozen=True, slots=True)
class Held:
    """The answer to `Hold`."""

    clock: int


@dataclass(frozen=True, slots=True)
class Switch:
    """From the manager to a dispatcher: stamps above `stamp` follow this plan."""

    stamp: int
    plan: Plan
    newcomers: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Dispatchers:
    """From the manager to a shuffler: deal tuples to these from now on."""

    names: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Protections:
    """Everything the protocol does for exactness; tests turn single ones off and see the join go wrong.

    Args:
        ordered: units wait for the signals and process by stamp; else at once what comes.
        numbered: units take messages by number; else in the order they come.
        unwatched: dispatchers that units leave out of the minimum.
        ties_by_name: equal stamps by dispatcher; else by arrival.
        strictly_below: a tuple whose stamp equals the smallest signal waits.
        wall_clock: the logical clock follows the wall clock and moves at signals too; else tuples alone move it.
        signals_to_all: else a signal goes only to units that were sent a tuple since the last one.
        discard_when_processed: Theorem 1 is applied when a tuple is processed; else already when it is received.
        agreed_stamp: a new plan is used from one stamp on; else by each dispatcher as soon as it hears of it.
        announced: units hear of a new dispatcher before they process anything of its time.
        safe_when_written: units say that a message is safe once their state is; else at its receipt.
        numbered_results: the collector drops results whose number it has had.
        safe_with_replicas: a dispatcher keeps a tuple until all who are to keep it do; else until one of them does.
        expired_by_primary: a replica goes when the unit that stores the tuple says so; else by its holder's clock.
        restored_after_resumed: a rebuilt unit asks others once all dispatchers have answered; else at the same time.
        restored_in_order: a unit that is rebuilt takes in what it gets back by stamp; else at once.
    """

    ordered: bool = True
    numbered: bool = True
    unwatched: frozenset[str] = frozenset()
    ties_by_name: bool = True
    strictly_below: bool = True
    wall_clock: bool = True
    signals_to_all: bool = True
    discard_when_processed: bool = True
    agreed_stamp: bool = True
    announced: bool = True
    safe_when_written: bool = True
    numbered_results: bool = True
    safe_with_replicas: bool = True
    expired_by_primary: bool = True
    restored_after_resumed: bool = True
    restored_in_order: bool = True


PROTECTED = Protections()
