"""The clients: `Client` blocks, `AsyncClient` is for event loops; both have the same methods, written once."""

from __future__ import annotations

import os
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from functools import wraps
from types import TracebackType
from typing import Any, Concatenate, Generic, ParamSpec, Self, TypeVar, overload

from streamjoin.client.calls import asking, drafts, files, jobs, machines, phases, relations, reports, results, streams
from streamjoin.client.retry import Patience
from streamjoin.client.steps import Exchange, Flow
from streamjoin.client.tailing import tail as tail_flow
from streamjoin.client.transport import Asynchronous, Blocking
from streamjoin.errors import InputError

P = ParamSpec("P")
T = TypeVar("T")
Transport = TypeVar("Transport", bound=Blocking | Asynchronous)
DEFAULT_HOST = "http://127.0.0.1:8000"


class Group(Generic[Transport]):
    """Methods of a client that belong together."""

    def __init__(self, transport: Transport, patience: Patience) -> None:
        self._transport = transport
        self._patience = patience


class Method(Generic[P, T]):
    """A conversation as a method: it gives its result, or on `AsyncClient` something to await for it."""

    def __init__(self, exchange: Callable[Concatenate[Patience, P], Exchange[T]]) -> None:
        self.exchange = exchange
        self.__doc__ = exchange.__doc__

    @overload
    def __get__(self, group: Group[Blocking], owner: object) -> Callable[P, T]: ...
    @overload
    def __get__(self, group: Group[Asynchronous], owner: object) -> Callable[P, Awaitable[T]]: ...
    @overload
    def __get__(self, group: None, owner: object) -> Self: ...
    def __get__(self, group: Any, owner: object) -> Any:
        if group is None:
            return self

        @wraps(self.exchange)
        def method(*args: P.args, **kwargs: P.kwargs) -> Any:
            return group._transport.run(self.exchange(group._patience, *args, **kwargs))

        return method


class Values(Generic[P, T]):
    """A conversation as a method that gives one value after the other."""

    def __init__(self, flow: Callable[Concatenate[Patience, P], Flow[T]]) -> None:
        self.flow = flow
        self.__doc__ = flow.__doc__

    @overload
    def __get__(self, group: Group[Blocking], owner: object) -> Callable[P, Iterator[T]]: ...
    @overload
    def __get__(self, group: Group[Asynchronous], owner: object) -> Callable[P, AsyncIterator[T]]: ...
    @overload
    def __get__(self, group: None, owner: object) -> Self: ...
    def __get__(self, group: Any, owner: object) -> Any:
        if group is None:
            return self

        @wraps(self.flow)
        def method(*args: P.args, **kwargs: P.kwargs) -> Any:
            return group._transport.iterate(self.flow(group._patience, *args, **kwargs))

        return method


class Streams(Group[Transport]):
    """Registered streams."""

    list = Values(streams.list_streams)
    get = Method(streams.get_stream)
    create = Method(streams.create_stream)
    change = Method(streams.change_stream)
    delete = Method(streams.delete_stream)
    test = Method(streams.look_at_stream)
    sample = Method(streams.sample_stream)
    push = Method(streams.push_rows)


class Relations(Group[Transport]):
    """Registered relations: finite tables that streams are joined with."""

    list = Values(relations.list_relations)
    get = Method(relations.get_relation)
    create = Method(relations.create_relation)
    change = Method(relations.change_relation)
    delete = Method(relations.delete_relation)
    test = Method(relations.look_at_relation)
    sample = Method(relations.sample_relation)
    versions = Method(relations.relation_versions)
    refresh = Method(relations.refresh_relation)


class Uploads(Group[Transport]):
    """Small files that were sent to the platform."""

    list = Values(files.list_uploads)
    add = Method(files.add_upload)
    delete = Method(files.delete_upload)


class Machines(Group[Transport]):
    """Machines whose workers run jobs."""

    list = Values(machines.list_machines)


class Jobs(Group[Transport]):
    """Jobs: joins that run, or are to."""

    list = Values(jobs.list_jobs)
    get = Method(jobs.get_job)
    create = Method(jobs.create_job)
    change = Method(jobs.change_job)
    delete = Method(phases.delete_job)
    validate = Method(drafts.validate)
    explain = Method(drafts.explain)
    preview = Method(drafts.preview)
    diff = Method(jobs.diff_job)
    start = Method(phases.start_job)
    stop = Method(phases.stop_job)
    restart = Method(phases.restart_job)
    rescale = Method(phases.rescale_job)
    wait = Method(phases.wait_for_job)
    events = Values(reports.job_events)
    metrics = Method(reports.job_metrics)
    logs = Method(reports.job_logs)
    snapshots = Values(reports.job_snapshots)
    rejected_counts = Method(reports.rejected_counts)
    rejected = Values(reports.rejected_rows)
    download_rejected = Values(reports.download_rejected)


class Api(Group[Transport]):
    """What both clients can do.

    Args:
        host: the platform's address; STREAMJOIN_HOST, else port STREAMJOIN_PORT (8000) of this machine.
        api_key: STREAMJOIN_API_KEY unless given; none is needed where the platform's auth is off.
        timeout_s: for one attempt of a request.
        deadline_s: for a request with all attempts, and for a tail to be heard of again. Questions to results have as
            long as their answer may take, see `query`.
        reach_s: for a request while nobody listens at the address; `deadline_s` unless given.
    """

    transport: type[Transport]

    def __init__(
        self,
        host: str | None = None,
        api_key: str | None = None,
        *,
        timeout_s: float = 30.0,
        deadline_s: float = 60.0,
        reach_s: float | None = None,
    ) -> None:
        address = find_host(host)
        key = api_key if api_key is not None else os.environ.get("STREAMJOIN_API_KEY", "")
        headers = {"User-Agent": "streamjoin", "Accept-Encoding": "identity"}
        if key:
            if not (key.isascii() and key.isprintable()) or " " in key:
                raise InputError("the API key has letters that no key has; see STREAMJOIN_API_KEY")
            headers["Authorization"] = f"Bearer {key}"
        patience = Patience(address, timeout_s, deadline_s, deadline_s if reach_s is None else reach_s)
        super().__init__(self.transport(address, headers), patience)
        self.host = address
        self.streams: Streams[Transport] = Streams(self._transport, self._patience)
        self.relations: Relations[Transport] = Relations(self._transport, self._patience)
        self.uploads: Uploads[Transport] = Uploads(self._transport, self._patience)
        self.machines: Machines[Transport] = Machines(self._transport, self._patience)
        self.jobs: Jobs[Transport] = Jobs(self._transport, self._patience)

    query = Method(results.query)
    tail = Values(tail_flow)
    events = Values(reports.all_events)
    files = Values(files.list_files)
    call = Method(asking.call)


class Client(Api[Blocking]):
    """Talks to the platform and waits for its answers. Close it, or use it in a `with` block."""

    transport = Blocking

    def close(self) -> None:
        """Give the connections back."""
        self._transport.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


class AsyncClient(Api[Asynchronous]):
    """The same on an event loop: results are awaited, lists and tails iterated by `async for`."""

    transport = Asynchronous

    async def close(self) -> None:
        """Give the connections back."""
        await self._transport.close()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()


def find_host(given: str | None) -> str:
    """The platform's address: as given, or of the environment.

    The variables that a server reads work here too: a STREAMJOIN_HOST without a scheme is joined with STREAMJOIN_PORT,
    and STREAMJOIN_PORT alone means that port of this machine.

    Raises:
        InputError: it is no address.
    """
    port = (os.environ.get("STREAMJOIN_PORT") or "8000").strip()
    text = (given or os.environ.get("STREAMJOIN_HOST") or f"http://127.0.0.1:{port}").strip()
    scheme, separator, rest = text.partition("://")
    if not separator:
        scheme, rest = "http", {"0.0.0.0": "127.0.0.1", "::": "[::1]", "::1": "[::1]"}.get(text, text)
        if ":" not in rest.rpartition("]")[2]:
            rest = f"{rest}:{port}"
    rest = rest.rstrip("/")
    if scheme not in ("http", "https") or not rest or any(letter.isspace() for letter in rest):
        raise InputError(
            f'"{text[:100]}" is not an address of a platform; set STREAMJOIN_HOST to one such as {DEFAULT_HOST}'
        )
    return f"{scheme}://{rest}"
