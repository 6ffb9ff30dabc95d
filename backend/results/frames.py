"""The frames of the websocket protocol streamjoin.v1 as models; docs/asyncapi.json is made of them.

A frame is a JSON object with a `type`; `id` is the client's name for one of its subscriptions or questions.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, TypeAdapter

from backend.columns import Column
from backend.given import Given
from backend.problems import ProblemDocument
from backend.results.question import JOB_MAX, Condition, Names, QueryIn, SnapshotText

SUBPROTOCOL = "streamjoin.v1"

BAD_FRAME = 4400
NOT_AUTHENTICATED = 4401
TOO_LATE = 4408
TOO_MANY = 4429
AWAY = 1001
CLOSE_CODES = {
    BAD_FRAME: "the client sent what is no frame, or one that cannot come now",
    NOT_AUTHENTICATED: "nobody is logged in, or no longer",
    TOO_LATE: "no connection_init in time, or nothing was read for too long",
    TOO_MANY: "too many websockets, frames or greetings",
}

Id = Annotated[str, Field(min_length=1, max_length=100)]


class Subscription(Given):
    """A continuous question.

    Args:
        from_: `now`, `oldest`, or the id of the snapshot after which to go on.
        results: which results that snapshot is of, as their `schema` said; a job that begins anew may give ids again.
        backpressure: when the client is too slow, drop the oldest whole snapshots, or end the subscription.
        max_rate: snapshots a second at most; what comes faster waits, and is dropped as for a slow client.
    """

    model_config = ConfigDict(populate_by_name=True)

    job: str = Field(min_length=1, max_length=JOB_MAX, description="Its id or name.")
    where: Condition | None = None
    select: Names | None = None
    from_: Literal["now", "oldest"] | SnapshotText = Field("now", alias="from")
    results: str | None = Field(None, max_length=300, description="Of the snapshot in `from`; see `schema`.")
    backpressure: Literal["drop", "disconnect"] = "drop"
    max_rate: float | None = Field(None, gt=0, le=1000)


class ConnectionInit(Given):
    """The first frame of a client."""

    type: Literal["connection_init"]
    payload: dict[str, Any] | None = None


class Subscribe(Given):
    """Begin a continuous question: `schema`, then `next` and `progress`, until `complete`."""

    type: Literal["subscribe"]
    id: Id
    payload: Subscription


class Ask(Given):
    """Begin a one-time question, as POST /api/v1/queries: `schema`, `next` with its rows, `complete` with its end."""

    type: Literal["query"]
    id: Id
    payload: QueryIn


class ClientComplete(Given):
    """End a subscription or question; nothing more comes under this id but its `complete`."""

    type: Literal["complete"]
    id: Id


class Ping(Given):
    """Answered by `pong` with the same payload."""

    type: Literal["ping"]
    payload: dict[str, Any] | None = None


class ClientPong(Given):
    """Taken, and not answered."""

    type: Literal["pong"]
    payload: dict[str, Any] | None = None


ClientFrame = Annotated[
    ConnectionInit | Subscribe | Ask | ClientComplete | Ping | ClientPong, Field(discriminator="type")
]
CLIENT_FRAMES: TypeAdapter[ClientFrame] = TypeAdapter(ClientFrame)


class SocketLimits(BaseModel):
    """What the websocket keeps to."""

    frame_bytes: int
    frames_a_second: int
    subscriptions: int
    queue_snapshots: int
    queue_bytes: int
    snapshot_bytes: int
    init_s: float
    send_s: float


class Greeting(BaseModel):
    """Of the server."""

    server_version: str
    heartbeat_s: float
    limits: SocketLimits


class ConnectionAck(BaseModel):
    """Answers `connection_init`."""

    type: Literal["connection_ack"] = "connection_ack"
    payload: Greeting


class Schema(BaseModel):
    """What the rows are.

    Args:
        groups: of groups that change, the columns that tell them apart: a row replaces that of its group, or ends it
            where its `op` is `delete`. Empty where a row is final.
        snapshot: the newest one that is not sent: what comes begins after it. For a question, the newest it covers.
        results: tells these results from those that the job had before it began anew; whoever goes on after a snapshot
            sends it back.
    """

    job: str
    job_name: str
    columns: list[Column]
    key: Column | None = None
    groups: list[str] = []
    snapshot: str | None
    results: str


class SchemaFrame(BaseModel):
    """Comes before all rows."""

    type: Literal["schema"] = "schema"
    id: Id
    payload: Schema


class Gap(BaseModel):
    """Snapshots that were dropped because the client was slow; `first` and `last` of them, and their rows."""

    first: str
    last: str
    rows: int


class News(BaseModel):
    """Rows of one snapshot.

    Args:
        rows: arrays in the order of the schema's columns.
        dropped: snapshots between the one before and this that were dropped; `gap` says which.
        more: more rows of this snapshot follow in another frame; resume after it only once they have come.
        truncated: the snapshot has more rows than are sent; a one-time question gives them all.
    """

    snapshot: str
    rows: list[list[Any]]
    dropped: int
    gap: Gap | None = None
    more: bool = False
    truncated: bool = False


class NextFrame(BaseModel):
    """Rows."""

    type: Literal["next"] = "next"
    id: Id
    payload: News


class Progress(BaseModel):
    """How far a subscription is.

    Args:
        snapshot: resume after this one: everything up to it has been sent, or had no rows; None before the first.
        mark: the event time up to which all streams had come at the newest commit.
        lag_ms: since the start of the last batch that was committed; it grows while the job stands still.
        phase: of the job.
        waiting: snapshots that wait for this client.
    """

    snapshot: str | None
    mark: str | None
    lag_ms: int | None
    phase: str
    waiting: int = 0


class ProgressFrame(BaseModel):
    """Every `heartbeat_s`."""

    type: Literal["progress"] = "progress"
    id: Id
    payload: Progress


class ErrorFrame(BaseModel):
    """What is wrong with a subscription or question; `complete` follows."""

    type: Literal["error"] = "error"
    id: Id
    payload: ProblemDocument


class Completion(BaseModel):
    """Why nothing more comes.

    Args:
        reason: `asked`: the client asked for it; `answered`: the question is answered in full; `failed`: see the error
            before it; `deleted`: the job was deleted; `restarted`: the job began anew, so its earlier results are no
            longer its own; `resync`: results that the client asked for have been removed, or it is so far behind that
            it would miss changes of groups; `too_slow`: the client is, and chose backpressure `disconnect`, so it may
            subscribe again behind what it has; `closing`: the server is shutting down.
        end: of a question: as in the JSON reply of POST /api/v1/queries.
    """

    reason: Literal["asked", "answered", "failed", "deleted", "restarted", "resync", "too_slow", "closing"]
    end: dict[str, Any] | None = None


class CompleteFrame(BaseModel):
    """The last frame under its id."""

    type: Literal["complete"] = "complete"
    id: Id
    payload: Completion


class Pong(BaseModel):
    """Answers `ping`."""

    type: Literal["pong"] = "pong"
    payload: dict[str, Any] | None = None


ServerFrame = Annotated[
    ConnectionAck | SchemaFrame | NextFrame | ProgressFrame | ErrorFrame | CompleteFrame | Pong,
    Field(discriminator="type"),
]
SERVER_FRAMES: TypeAdapter[ServerFrame] = TypeAdapter(ServerFrame)
