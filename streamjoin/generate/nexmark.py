"""Nexmark: persons, auctions and bids of an auction house, as three streams cut from one sequence of events.

    event n   n mod 50 = 0: person    1..3: auction    4..49: bid        (2 %, 6 %, 92 %)
    time      floor(n * 10**6 / rate) us after the start, so `rate` counts the events of all three streams

Source: the generator of the nexmark/nexmark and Apache Beam suites, with their default ratios. Differences:
    1. Every value is a hash of (seed, event number); nexmark/nexmark is unseeded, so two runs of it differ.
    2. A bidder's number is shifted to the first person id once. nexmark/nexmark shifts it twice, by which its
       bidders start at 2000 and few of them exist.
    3. Times, expiries too, are in microseconds; the suites have milliseconds.
    4. Texts have a fixed length, and there is no padding column.

A reference may lead: to one of the next 10 persons or auctions, which does not exist yet.
How long an auction lives follows from the rate (about 167 ms on average at 10,000 events/s): keep the nominal
rate of a benchmark fixed, whatever speed the events are sent at.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from streamjoin.generate.counter import Ints, integers, uniforms
from streamjoin.generate.stream import TIME, TIMESTAMP, Generator, Request, timestamps
from streamjoin.generate.text import letters, pick, strings

FIRST_PERSON_ID = 1000
FIRST_AUCTION_ID = 1000
FIRST_CATEGORY_ID = 10
CATEGORIES = 5

EVENTS_PER_EPOCH = 50
AUCTIONS_PER_EPOCH = 3
BIDS_PER_EPOCH = 46

ACTIVE_PERSONS = 1000
IN_FLIGHT_AUCTIONS = 100
LEAD = 10
"""How many ids that do not exist yet can be referred to."""

HOT_GROUP = 100
"""One id in so many is hot: the first of its hundred; for bidders the second."""

HOT_SELLER_SHARE = 3 / 4
HOT_AUCTION_SHARE = 1 / 2
HOT_BIDDER_SHARE = 3 / 4
HOT_CHANNEL_SHARE = 1 / 2

_NAMES = tuple(
    f"{first} {last}"
    for first in ["Peter", "Paul", "Luke", "John", "Saul", "Vicky", "Kate", "Julie", "Sarah", "Deiter", "Walter"]
    for last in ["Shultz", "Abrams", "Spencer", "White", "Bartels", "Walton", "Smith", "Jones", "Noris"]
)
_CITIES = (
    "Phoenix", "Los Angeles", "San Francisco", "Boise", "Portland", "Bend", "Redmond", "Seattle", "Kent", "Cheyenne",
)  # fmt: skip
_STATES = ("AZ", "CA", "ID", "OR", "WA", "WY")
_HOT_CHANNELS = ("Apple", "Baidu", "Facebook", "Google")
_COLD_CHANNELS = 10_000
_CHANNELS = (*_HOT_CHANNELS, *(f"channel-{number}" for number in range(_COLD_CHANNELS)))
_ITEM_LENGTH = 20


@dataclass(frozen=True, slots=True)
class _Draws:
    """The random numbers of some events of one stream, with the suite's rules that several columns share."""

    stream: str
    seed: int
    events: Ints

    def chance(self, column: str, probability: float) -> npt.NDArray[np.bool_]:
        return uniforms(self.seed, f"{self.stream}.{column}", self.events) < probability

    def integers(self, column: str, count: int | Ints) -> Ints:
        return integers(self.seed, f"{self.stream}.{column}", self.events, count)

    def text(self, column: str, length: int) -> pa.Array:
        return strings(letters(self.seed, f"{self.stream}.{column}", self.events, length))

    def picks(self, column: str, choices: tuple[str, ...]) -> pa.Array:
        return pick(choices, self.integers(column, len(choices)))

    def prices(self, column: str) -> Ints:
        """Log-uniform in 100..10**8."""
        return np.rint(10.0 ** (6 * uniforms(self.seed, f"{self.stream}.{column}", self.events)) * 100).astype(np.int64)

    def persons(self, column: str, hot: Ints, hot_share: float) -> Ints:
        """Person ids: `hot` in that share of events, else one of the last 1000 persons or the next 10."""
        persons = last_person(self.events) + 1
        active = np.minimum(persons, ACTIVE_PERSONS)
        others = persons - active + self.integers(column, active + LEAD)
        return FIRST_PERSON_ID + np.where(self.chance(f"{column}.hot", hot_share), hot, others)


def last_person(events: Ints) -> Ints:
    """How many persons came before the newest one at each event: its id without the first id."""
    return events // EVENTS_PER_EPOCH


def last_auction(events: Ints) -> Ints:
    """How many auctions came before the newest one at each event; -1 at event 0, where there is none."""
    begun = np.clip(events % EVENTS_PER_EPOCH, 0, AUCTIONS_PER_EPOCH)
    return events // EVENTS_PER_EPOCH * AUCTIONS_PER_EPOCH + begun - 1


def person_events(rows: Ints) -> Ints:
    """Event numbers of the persons with these row numbers."""
    return rows * EVENTS_PER_EPOCH


def auction_events(rows: Ints) -> Ints:
    """Event numbers of the auctions with these row numbers."""
    return rows // AUCTIONS_PER_EPOCH * EVENTS_PER_EPOCH + 1 + rows % AUCTIONS_PER_EPOCH


def bid_events(rows: Ints) -> Ints:
    """Event numbers of the bids with these row numbers."""
    return rows // BIDS_PER_EPOCH * EVENTS_PER_EPOCH + 1 + AUCTIONS_PER_EPOCH + rows % BIDS_PER_EPOCH


def _person_columns(request: Request) -> list[pa.Array]:
    events = person_events(request.numbers())
    draw = _Draws("nexmark.person", request.seed, events)
    email = np.hstack(
        [
            letters(request.seed, "nexmark.person.mailbox", events, 7),
            np.full((len(events), 1), ord("@"), dtype=np.uint8),
            letters(request.seed, "nexmark.person.host", events, 5),
            np.tile(np.frombuffer(b".com", dtype=np.uint8), (len(events), 1)),
        ]
    )
    return [
        pa.array(FIRST_PERSON_ID + last_person(events)),
        draw.picks("name", _NAMES),
        strings(email),
        draw.picks("city", _CITIES),
        draw.picks("state", _STATES),
        timestamps(request.times_us(events)),
    ]


def _auction_columns(request: Request) -> list[pa.Array]:
    events = auction_events(request.numbers())
    draw = _Draws("nexmark.auction", request.seed, events)
    times_us = request.times_us(events)
    # An auction lives as long, on average, as the suite keeps it in flight: until 100 more auctions have begun.
    in_flight_events = IN_FLIGHT_AUCTIONS * EVENTS_PER_EPOCH // AUCTIONS_PER_EPOCH
    horizons_us = request.times_us(events + in_flight_events) - times_us
    lives_us = 1 + draw.integers("life", np.maximum(2 * horizons_us, 1))
    initial = draw.prices("initial")
    hot_seller = last_person(events) // HOT_GROUP * HOT_GROUP
    return [
        pa.array(FIRST_AUCTION_ID + last_auction(events)),
        draw.text("item", _ITEM_LENGTH),
        pa.array(initial),
        pa.array(initial + draw.prices("reserve")),
        timestamps(times_us + lives_us),
        pa.array(draw.persons("seller", hot_seller, HOT_SELLER_SHARE)),
        pa.array(FIRST_CATEGORY_ID + draw.integers("category", CATEGORIES)),
        timestamps(times_us),
    ]


def _bid_columns(request: Request) -> list[pa.Array]:
    events = bid_events(request.numbers())
    draw = _Draws("nexmark.bid", request.seed, events)
    newest = last_auction(events)
    hot_auction = newest // HOT_GROUP * HOT_GROUP
    oldest = np.maximum(newest - IN_FLIGHT_AUCTIONS, 0)
    other_auction = oldest + draw.integers("auction", newest - oldest + 1 + LEAD)
    auction = FIRST_AUCTION_ID + np.where(draw.chance("auction.hot", HOT_AUCTION_SHARE), hot_auction, other_auction)
    hot_bidder = last_person(events) // HOT_GROUP * HOT_GROUP + 1
    channel = np.where(
        draw.chance("channel.hot", HOT_CHANNEL_SHARE),
        draw.integers("channel", len(_HOT_CHANNELS)),
        len(_HOT_CHANNELS) + draw.integers("channel", _COLD_CHANNELS),
    )
    return [
        pa.array(auction),
        pa.array(draw.persons("bidder", hot_bidder, HOT_BIDDER_SHARE)),
        pa.array(draw.prices("price")),
        pick(_CHANNELS, channel),
        timestamps(request.times_us(events)),
    ]


PERSON = Generator(
    kind="nexmark.person",
    description="Nexmark persons, 1 of 50 events; rate counts the events of all three Nexmark streams",
    schema=pa.schema(
        {
            "id": pa.int64(),
            "name": pa.string(),
            "email": pa.string(),
            "city": pa.string(),
            "state": pa.string(),
            TIME: TIMESTAMP,
        }
    ),
    columns=_person_columns,
    share=1 / EVENTS_PER_EPOCH,
)
AUCTION = Generator(
    kind="nexmark.auction",
    description="Nexmark auctions, 3 of 50 events; rate counts the events of all three Nexmark streams",
    schema=pa.schema(
        {
            "id": pa.int64(),
            "item": pa.string(),
            "initial": pa.int64(),
            "reserve": pa.int64(),
            "expires": TIMESTAMP,
            "seller": pa.int64(),
            "category": pa.int64(),
            TIME: TIMESTAMP,
        }
    ),
    columns=_auction_columns,
    share=AUCTIONS_PER_EPOCH / EVENTS_PER_EPOCH,
)
BID = Generator(
    kind="nexmark.bid",
    description="Nexmark bids, 46 of 50 events; rate counts the events of all three Nexmark streams",
    schema=pa.schema(
        {
            "auction": pa.int64(),
            "bidder": pa.int64(),
            "price": pa.int64(),
            "channel": pa.string(),
            TIME: TIMESTAMP,
        }
    ),
    columns=_bid_columns,
    share=BIDS_PER_EPOCH / EVENTS_PER_EPOCH,
)
