"""Nexmark: order of events, references and shares."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from streamjoin.generate import generator
from streamjoin.generate.nexmark import auction_events, bid_events, last_auction, last_person, person_events

RATE = 10_000.0
EPOCHS = 5_000  # 250,000 events: 25 s of event time.
BASE_US = 1_767_225_600_000_000


def rows(stream: str, count: int) -> pa.RecordBatch:
    return generator(f"nexmark.{stream}").rows(0, count, seed=9, rate=RATE)


@pytest.fixture(scope="module")
def persons() -> pa.RecordBatch:
    return rows("person", EPOCHS)


@pytest.fixture(scope="module")
def auctions() -> pa.RecordBatch:
    return rows("auction", EPOCHS * 3)


@pytest.fixture(scope="module")
def bids() -> pa.RecordBatch:
    return rows("bid", EPOCHS * 46)


def times_us(batch: pa.RecordBatch, column: str = "ts") -> Any:
    return batch[column].cast(pa.int64()).to_numpy()


def events_of(batch: pa.RecordBatch) -> Any:
    return (times_us(batch) - BASE_US) // 100


def test_every_event_is_one_person_three_auctions_or_forty_six_bids_of_fifty() -> None:
    kinds = {
        **dict.fromkeys(person_events(np.arange(4)).tolist(), "p"),
        **dict.fromkeys(auction_events(np.arange(12)).tolist(), "a"),
        **dict.fromkeys(bid_events(np.arange(184)).tolist(), "b"),
    }
    assert "".join(kinds[event] for event in range(200)) == ("p" + "a" * 3 + "b" * 46) * 4


def test_streams_share_one_clock_without_gap_or_clash(
    persons: pa.RecordBatch, auctions: pa.RecordBatch, bids: pa.RecordBatch
) -> None:
    times = np.sort(np.concatenate([times_us(persons), times_us(auctions), times_us(bids)]))
    assert (times == BASE_US + 100 * np.arange(EPOCHS * 50)).all()


def test_newest_ids_count_the_persons_and_auctions_so_far() -> None:
    events = np.arange(500)
    assert last_person(events).tolist() == (np.cumsum(events % 50 == 0) - 1).tolist()
    assert last_auction(events).tolist() == (np.cumsum((events % 50 >= 1) & (events % 50 <= 3)) - 1).tolist()


def test_ids_count_up_from_one_thousand(persons: pa.RecordBatch, auctions: pa.RecordBatch) -> None:
    assert persons["id"].to_pylist() == list(range(1000, 1000 + EPOCHS))
    assert auctions["id"].to_pylist() == list(range(1000, 1000 + EPOCHS * 3))


def test_bid_refers_to_the_last_hundred_auctions_the_hot_one_or_the_next_ten(bids: pa.RecordBatch) -> None:
    newest = last_auction(events_of(bids))
    auction = bids["auction"].to_numpy() - 1000
    hot = newest // 100 * 100
    inside = (auction >= np.maximum(newest - 100, 0)) & (auction <= newest + 10)
    assert (inside | (auction == hot)).all()
    # Both ends of the range are used.
    assert {-100, 10} <= set((auction - newest).tolist())


@pytest.mark.parametrize(("stream", "column", "hot"), [("auction", "seller", 0), ("bid", "bidder", 1)])
def test_person_referred_to_is_one_of_the_last_thousand_the_hot_one_or_the_next_ten(
    stream: str, column: str, hot: int, request: pytest.FixtureRequest
) -> None:
    batch = request.getfixturevalue(f"{stream}s")
    newest = last_person(events_of(batch))
    person = batch[column].to_numpy() - 1000
    assert ((person >= np.maximum(newest - 999, 0)) & (person <= newest + 10)).all()
    # Three of four are hot, and a few of the rest are by chance.
    assert abs((person == newest // 100 * 100 + hot).mean() - 0.752) < 0.012


def test_half_of_the_bids_go_to_the_hot_auction(bids: pa.RecordBatch) -> None:
    hot = last_auction(events_of(bids)) // 100 * 100
    # One of 111 other bids hits it by chance.
    assert abs((bids["auction"].to_numpy() - 1000 == hot).mean() - (0.5 + 0.5 / 111)) < 0.006


def test_every_id_referred_to_exists_once_its_lead_has_passed(
    persons: pa.RecordBatch, auctions: pa.RecordBatch, bids: pa.RecordBatch
) -> None:
    # The last references may lead by ten ids.
    known_persons, known_auctions = set(range(1000, 1010 + EPOCHS)), set(range(1000, 1010 + EPOCHS * 3))
    assert set(persons["id"].to_pylist()) <= known_persons
    assert set(auctions["seller"].to_pylist()) <= known_persons
    assert set(bids["bidder"].to_pylist()) <= known_persons
    assert set(bids["auction"].to_pylist()) <= known_auctions


def test_first_bidders_start_at_one_thousand_not_two(bids: pa.RecordBatch) -> None:
    assert bids["bidder"].to_numpy()[:46].max() <= 1010


def test_prices_are_spread_over_six_decades(bids: pa.RecordBatch, auctions: pa.RecordBatch) -> None:
    for prices in (bids["price"].to_numpy(), auctions["initial"].to_numpy()):
        assert prices.min() >= 100
        assert prices.max() <= 10**8
        decades = np.histogram(np.log10(prices), bins=np.arange(2, 9))[0] / len(prices)
        assert np.abs(decades - 1 / 6).max() < 0.015


def test_reserve_is_above_the_initial_price(auctions: pa.RecordBatch) -> None:
    assert (auctions["reserve"].to_numpy() - auctions["initial"].to_numpy()).min() >= 100


def test_auction_lives_as_long_as_hundred_auctions_take_on_average(auctions: pa.RecordBatch) -> None:
    lives_us = times_us(auctions, "expires") - times_us(auctions)
    # 1,666 events at 10,000/s are 166,600 us.
    assert lives_us.min() >= 1
    assert lives_us.max() <= 2 * 166_600
    assert abs(lives_us.mean() - 166_600) < 2_500


def test_auction_of_a_degenerate_rate_still_expires_after_it_began() -> None:
    batch = generator("nexmark.auction").rows(0, 1000, seed=1, rate=1e12)
    assert (times_us(batch, "expires") > times_us(batch)).all()


def test_categories_are_ten_to_fourteen(auctions: pa.RecordBatch) -> None:
    assert set(auctions["category"].to_pylist()) == {10, 11, 12, 13, 14}


def test_half_of_the_bids_come_through_four_channels(bids: pa.RecordBatch) -> None:
    channels = bids["channel"].to_pylist()
    hot = [channel for channel in channels if not channel.startswith("channel-")]
    assert len(set(hot)) == 4
    assert abs(len(hot) / len(channels) - 0.5) < 0.006
    assert 9_900 < len(set(channels) - set(hot)) <= 10_000


def test_persons_live_in_six_western_states(persons: pa.RecordBatch) -> None:
    assert set(persons["state"].to_pylist()) == {"AZ", "CA", "ID", "OR", "WA", "WY"}
    assert len(set(persons["city"].to_pylist())) == 10
    assert all(name.count(" ") == 1 for name in persons["name"].to_pylist())
    assert all(email[7] == "@" and email.endswith(".com") for email in persons["email"].to_pylist())
