"""The catalog's tables. Times are microseconds since 1970; documents are JSON; a version rises with every change."""

from __future__ import annotations

from typing import Any, ClassVar

from sqlalchemy import (
    JSON,
    BigInteger,
    Boolean,
    ForeignKey,
    Index,
    Integer,
    LargeBinary,
    String,
    Text,
    UniqueConstraint,
    false,
)
from sqlalchemy.orm import DeclarativeBase, Mapped, mapped_column

from backend.catalog import lifecycle
from backend.catalog.ids import now_us
from backend.catalog.jobspec import JobSpec, JobSpecColumn


class Base(DeclarativeBase):
    """All tables."""

    type_annotation_map: ClassVar = {
        dict[str, Any]: JSON,
        JobSpec: JobSpecColumn,
        bytes: LargeBinary,
        int: BigInteger,
        bool: Boolean,
    }


class User(Base):
    """Somebody who may use the platform.

    Args:
        role: viewer, operator or admin.
        password: an argon2 hash; None for a user of keys only.
    """

    __tablename__ = "users"
    id: Mapped[str] = mapped_column(String(40), primary_key=True)
    name: Mapped[str] = mapped_column(String(100), unique=True)
    role: Mapped[str] = mapped_column(String(20))
    password: Mapped[str | None] = mapped_column(String(300))
    disabled: Mapped[bool] = mapped_column(default=False)
    created_at_us: Mapped[int] = mapped_column(default=now_us)


class Session(Base):
    """A browser's login; the cookie's value is kept as its hash only."""

    __tablename__ = "sessions"
    hash: Mapped[str] = mapped_column(String(64), primary_key=True)
    user_id: Mapped[str] = mapped_column(ForeignKey("users.id", ondelete="CASCADE"), index=True)
    created_at_us: Mapped[int] = mapped_column(default=now_us)
    expires_at_us: Mapped[int]


class ApiKey(Base):
    """A program's key, kept as its hash; `start` are its first letters, to tell keys apart.

    Args:
        expires_at_us: None for keys of versions that made keys without an end.
        made_by_key, made_by_session: the key's id or the login's hash that made it.
        ends_with_login: whether it ends with that login; any ends with the key that made it.
    """

    __tablename__ = "api_keys"
    id: Mapped[str] = mapped_column(String(40), primary_key=True)
    user_id: Mapped[str] = mapped_column(ForeignKey("users.id", ondelete="CASCADE"), index=True)
    name: Mapped[str] = mapped_column(String(100))
    start: Mapped[str] = mapped_column(String(16))
    hash: Mapped[str] = mapped_column(String(64), unique=True)
    role: Mapped[str] = mapped_column(String(20))
    created_at_us: Mapped[int] = mapped_column(default=now_us)
    used_at_us: Mapped[int | None]
    revoked_at_us: Mapped[int | None]
    expires_at_us: Mapped[int | None]
    made_by_key: Mapped[str | None] = mapped_column(String(40), index=True)
    made_by_session: Mapped[str | None] = mapped_column(String(64), index=True)
    ends_with_login: Mapped[bool] = mapped_column(default=False, server_default=false())


class Registered(Base):
    """What people register under a name that queries use.

    Args:
        name: no other stream or relation has it.
        spec: an entry of a join file, without secrets.
        secrets: encrypted JSON of what opens it; never leaves the catalog in clear but to whoever reads it for a look
            or a job.
    """

    __abstract__ = True
    id: Mapped[str] = mapped_column(String(40), primary_key=True)
    name: Mapped[str] = mapped_column(String(63), unique=True)
    owner_id: Mapped[str | None] = mapped_column(ForeignKey("users.id", ondelete="SET NULL"))
    version: Mapped[int] = mapped_column(Integer, default=1)
    spec: Mapped[dict[str, Any]]
    secrets: Mapped[bytes | None]
    created_at_us: Mapped[int] = mapped_column(default=now_us)
    updated_at_us: Mapped[int] = mapped_column(default=now_us)


class Stream(Registered):
    """A registered stream; its spec is an entry of `streams:`."""

    __tablename__ = "streams"


class Relation(Registered):
    """A registered relation; its spec is an entry of `relations:`."""

    __tablename__ = "relations"


class Job(Base):
    """A join that is to run.

    Args:
        spec: query, operator, results and run of a join file, and `queries` beside the query, by name.
        streams, relations: their entries as they were when the job last changed: a later change of theirs is taken
            over by a change of the job only.
        wanted: running, stopped or deleted: what people asked for.
        observed: what was seen last; see `lifecycle`.
        generation: rises with every launch; a driver of an older one may change nothing.
        failures: launches in a row that failed; somebody who starts the job sets it to 0.
        restart_version: rises above itself and `version` with each change and each restart that is asked for.
        incarnation: rises when a change makes the job start anew, without its earlier state.
    """

    __tablename__ = "jobs"
    id: Mapped[str] = mapped_column(String(40), primary_key=True)
    name: Mapped[str] = mapped_column(String(100), unique=True)
    owner_id: Mapped[str | None] = mapped_column(ForeignKey("users.id", ondelete="SET NULL"))
    version: Mapped[int] = mapped_column(Integer, default=1)
    spec: Mapped[JobSpec]
    streams: Mapped[dict[str, Any]]
    relations: Mapped[dict[str, Any]] = mapped_column(default=dict)
    wanted: Mapped[str] = mapped_column(String(20), default="stopped")
    wanted_since_us: Mapped[int] = mapped_column(default=now_us)
    observed: Mapped[str] = mapped_column(String(20), default="stopped")
    observed_since_us: Mapped[int] = mapped_column(default=now_us)
    reason: Mapped[str | None] = mapped_column(Text)
    generation: Mapped[int] = mapped_column(Integer, default=0)
    failures: Mapped[int] = mapped_column(Integer, default=0)
    restart_version: Mapped[int] = mapped_column(Integer, default=0)
    incarnation: Mapped[int] = mapped_column(Integer, default=0)
    created_at_us: Mapped[int] = mapped_column(default=now_us)
    updated_at_us: Mapped[int] = mapped_column(default=now_us)

    @property
    def phase(self) -> str:
        """What is wanted and what was seen, in one word for people."""
        return lifecycle.phase(self.wanted, self.observed, given_up=self.is_given_up)

    @property
    def is_given_up(self) -> bool:
        """See `lifecycle.is_given_up`."""
        return lifecycle.is_given_up(self.failures, self.reason)

    @property
    def results_name(self) -> str:
        """What its results are called in the store, since it last started anew."""
        return self.results_of("")

    def results_of(self, query: str) -> str:
        """What the results of one of its `queries` are called."""
        return results_name(self.id, self.incarnation, query)

    @property
    def queries(self) -> tuple[str, ...]:
        """Names of all queries there ever were; that of its own query is empty."""
        return ("", *self.spec.queries)


def results_name(job_id: str, incarnation: int, query: str = "") -> str:
    """What the results of one incarnation of a job are called in the store.

    Args:
        query: the name of one beside the job's own.
    """
    name = f"{job_id}-{incarnation}" if incarnation else job_id
    return f"{name}.{query}" if query else name


class JobRevision(Base):
    """What a job was before each change, so that a change can be shown and taken back.

    Args:
        streams, relations: None (the JSON value) where they are those of the next version that is there, or of the job.
    """

    __tablename__ = "job_revisions"
    job_id: Mapped[str] = mapped_column(ForeignKey("jobs.id", ondelete="CASCADE"), primary_key=True)
    version: Mapped[int] = mapped_column(Integer, primary_key=True)
    spec: Mapped[JobSpec]
    streams: Mapped[dict[str, Any] | None] = mapped_column(nullable=False)
    relations: Mapped[dict[str, Any] | None] = mapped_column(nullable=False)
    created_at_us: Mapped[int] = mapped_column(default=now_us)


class Lease(Base):
    """Who runs a job just now, or did last.

    Args:
        token_hash: of the secret that the driver of this generation was given.
        host, pid, pid_started: which process it is; a pid alone may be another's by now.
        job_version: of the job that the driver runs, restarts counted; see `worker.leases.version_of`.
        ended: the driver said that it ended, and its lease is free.
        steps: seconds of each step of its start that is done, see `worker.steps`; None where nobody told of them.
        folder, incarnation: in which data folder the state of which incarnation of the job is, unless it is in a store.
        ran_in: which data folder its machine has, wherever the state is; rows of machines come and go.
    """

    __tablename__ = "leases"
    job_id: Mapped[str] = mapped_column(ForeignKey("jobs.id", ondelete="CASCADE"), primary_key=True)
    generation: Mapped[int] = mapped_column(Integer)
    job_version: Mapped[int] = mapped_column(Integer)
    host: Mapped[str] = mapped_column(String(255))
    pid: Mapped[int | None] = mapped_column(Integer)
    pid_started: Mapped[str | None] = mapped_column(String(40))
    taken_at_us: Mapped[int] = mapped_column(default=now_us)
    expires_at_us: Mapped[int]
    stop: Mapped[bool] = mapped_column(default=False)
    ended: Mapped[bool] = mapped_column(default=False)
    folder: Mapped[str | None] = mapped_column(String(40))
    incarnation: Mapped[int | None] = mapped_column(Integer)
    ran_in: Mapped[str | None] = mapped_column(String(40))
    steps: Mapped[dict[str, Any] | None]


class Machine(Base):
    """A machine whose worker takes jobs, as it said last.

    Args:
        folder: which data folder it has; machines that share one have the same.
        free_bytes: of memory that new drivers could have.
    """

    __tablename__ = "machines"
    name: Mapped[str] = mapped_column(String(200), primary_key=True)
    folder: Mapped[str] = mapped_column(String(40))
    seen_at_us: Mapped[int]
    free_bytes: Mapped[int]


class Report(Base):
    """What a driver reported of its batches in a span of time; thinned out as it gets older."""

    __tablename__ = "reports"
    job_id: Mapped[str] = mapped_column(ForeignKey("jobs.id", ondelete="CASCADE"), primary_key=True)
    at_us: Mapped[int] = mapped_column(primary_key=True)
    span_s: Mapped[int] = mapped_column(Integer, default=1)
    generation: Mapped[int] = mapped_column(Integer)
    body: Mapped[dict[str, Any]]


class Event(Base):
    """Something that happened to a job, or to the platform where `job_id` is None.

    Args:
        kind: such as job.started, driver.failed, user.created.
        severity: info, warning or error.
    """

    __tablename__ = "events"
    id: Mapped[str] = mapped_column(String(40), primary_key=True)
    job_id: Mapped[str | None] = mapped_column(ForeignKey("jobs.id", ondelete="CASCADE"))
    at_us: Mapped[int] = mapped_column(default=now_us)
    kind: Mapped[str] = mapped_column(String(60))
    severity: Mapped[str] = mapped_column(String(10), default="info")
    message: Mapped[str] = mapped_column(Text)
    data: Mapped[dict[str, Any]] = mapped_column(default=dict)
    actor_id: Mapped[str | None] = mapped_column(String(40))
    __table_args__ = (Index("events_of_job", "job_id", "id"),)


class Idempotency(Base):
    """The reply to a POST that carried an Idempotency-Key; `status` is None while it is being worked on.

    Args:
        actor: the user's id and role.
        reply: its body; None where that was not kept, see `backend.kept`.
        owner: the token of whoever works on it, or did.
        beat_at_us: when that was last heard of.
    """

    __tablename__ = "idempotency"
    id: Mapped[int] = mapped_column(Integer, primary_key=True)
    actor: Mapped[str] = mapped_column(String(40))
    key: Mapped[str] = mapped_column(String(200))
    request_hash: Mapped[str] = mapped_column(String(64))
    status: Mapped[int | None] = mapped_column(Integer)
    headers: Mapped[dict[str, Any] | None]
    reply: Mapped[bytes | None]
    owner: Mapped[str] = mapped_column(String(40), default="")
    beat_at_us: Mapped[int] = mapped_column(default=0)
    created_at_us: Mapped[int] = mapped_column(default=now_us, index=True)
    __table_args__ = (UniqueConstraint("actor", "key"),)


class SavedQuery(Base):
    """A question that somebody keeps."""

    __tablename__ = "saved_queries"
    id: Mapped[str] = mapped_column(String(40), primary_key=True)
    name: Mapped[str] = mapped_column(String(100), unique=True)
    owner_id: Mapped[str | None] = mapped_column(ForeignKey("users.id", ondelete="SET NULL"))
    version: Mapped[int] = mapped_column(Integer, default=1)
    question: Mapped[dict[str, Any]]
    created_at_us: Mapped[int] = mapped_column(default=now_us)
