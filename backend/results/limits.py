"""What one client may take; every answer and every websocket's greeting names what applies to it."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Limits:
    """Of one process.

    Args:
        rows, bytes, seconds: of an answer at most.
        rows_default: of a JSON answer, unless its question says otherwise.
        seconds_default: of an answer, unless its question says otherwise.
        answers, answers_an_actor: that are open at once.
        held_bytes, held_bytes_an_actor, held_bytes_an_answer: what open answers hold until they are read: groups.
        aggregate_bytes: what DuckDB may take for an aggregate.
        frame_bytes: of a client's frame.
        frames_a_second: of one websocket, on average over ten seconds.
        subscriptions: of one websocket.
        sockets, sockets_an_actor: websockets and event streams that are open at once.
        views, views_an_actor: different (where, select) of one job that are followed at once; of an actor those
            that nobody followed before.
        condition_parts, condition_parts_an_actor: in which the conditions of these are evaluated together for each
            block; a part takes about 10 us.
        queue_snapshots, queue_bytes: what waits for a slow client before the oldest snapshots are dropped.
        part_bytes: about so large a frame of rows becomes; larger snapshots come in several.
        snapshot_bytes: so much of one snapshot is sent; the rest can be asked for.
        heartbeat_s: how often a client hears of the progress, if of nothing else.
        init_s: how long a client may take to greet.
        send_s: how long a client may read nothing at all while something waits for it.
        recheck_s: how often it is looked whether the login behind a websocket still holds.
        linger_s: how long a job is followed after its last client has left.
    """

    rows: int = 10_000_000
    rows_default: int = 10_000
    bytes: int = 1 << 30
    seconds: float = 600.0
    seconds_default: float = 60.0
    answers: int = 64
    answers_an_actor: int = 32
    held_bytes: int = 1 << 30
    held_bytes_an_actor: int = 512 << 20
    held_bytes_an_answer: int = 256 << 20
    aggregate_bytes: int = 256 << 20
    frame_bytes: int = 64 << 10
    frames_a_second: int = 50
    subscriptions: int = 32
    sockets: int = 4096
    sockets_an_actor: int = 100
    views: int = 100
    views_an_actor: int = 50
    condition_parts: int = 10_000
    condition_parts_an_actor: int = 5_000
    queue_snapshots: int = 64
    queue_bytes: int = 4 << 20
    part_bytes: int = 128 << 10
    snapshot_bytes: int = 4 << 20
    heartbeat_s: float = 5.0
    init_s: float = 10.0
    send_s: float = 60.0
    recheck_s: float = 15.0
    linger_s: float = 15.0
