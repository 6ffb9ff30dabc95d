"""The three states of a worker as one table (ESJ, "Message passing", figure of MP-2PF)."""

from __future__ import annotations

from enum import Enum, auto


class State(Enum):
    """A worker starts in `PROCESSING` and comes back to it after each event."""

    PROCESSING = auto()
    FORWARDING = auto()
    DELETING = auto()


class Event(Enum):
    """What makes a worker go from one state to another: a message, or that it has done what the state is for."""

    TUPLE = auto()
    ACK = auto()
    SIZE_CHG = auto()
    CONDITION_MET = auto()
    SENT = auto()
    DELETED = auto()


TRANSITIONS: dict[tuple[State, Event], State] = {
    (State.PROCESSING, Event.TUPLE): State.PROCESSING,
    (State.PROCESSING, Event.SIZE_CHG): State.PROCESSING,
    (State.PROCESSING, Event.ACK): State.DELETING,
    (State.PROCESSING, Event.CONDITION_MET): State.FORWARDING,
    (State.FORWARDING, Event.SENT): State.PROCESSING,
    (State.DELETING, Event.DELETED): State.PROCESSING,
}


def after(state: State, event: Event) -> State:
    """The next state.

    Raises:
        RuntimeError: the event cannot happen in this state.
    """
    try:
        return TRANSITIONS[state, event]
    except KeyError:
        raise RuntimeError(f"{event.name} cannot happen in {state.name}") from None
