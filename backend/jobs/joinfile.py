"""The join file of a job: the same that the command line runs, with the platform's places in it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager, nullcontext, suppress
from typing import Any

import pyarrow as pa

from backend.apart import bounded, is_apart, looks_for
from backend.auth.hosts import check_client, check_place
from backend.catalog import models
from backend.catalog.jobspec import JobSpec
from backend.catalog.models import results_name
from backend.jobs.inputs import Inputs, inputs_of
from backend.jobs.runs import run_of
from backend.jobs.secrets import Secrets
from backend.relations.secrets import with_secrets
from backend.settings import Settings
from backend.streams.pushed import PUSH
from backend.uploads.names import resolved
from streamjoin.errors import InputError, StateError
from streamjoin.results.stores.spec import StoreSpec
from streamjoin.sources.asked import asked_by
from streamjoin.spark.identity import check_continues
from streamjoin.spec.job import IDENTITY_FILE
from streamjoin.spec.joinfile import JoinFile, of_content
from streamjoin.spec.outputs import store_spec
from streamjoin.spec.prepare import Bound, bind

RUN_FIELDS = (
    "slots", "files_per_batch", "offsets_per_batch", "heartbeat", "every", "strict", "driver_memory", "until_end",
)  # fmt: skip
"""What a job may set of `run:`; the platform sets the rest."""
RESULT_FIELDS = ("where", "select", "retain", "snapshot", "store")
OWN = "main"
"""What the join file calls a job's own query, where there are others beside it."""
_FOR_ALL = ("retain", "snapshot")


def check_spec(spec: JobSpec) -> None:
    """Refuse what a job may not set.

    Raises:
        InputError: names the field.
    """
    for section, given, allowed in (("run", spec.run, RUN_FIELDS), ("results", spec.results, RESULT_FIELDS)):
        for field in given:
            if field not in allowed:
                raise InputError(
                    f"is set by the platform, or unknown; a job sets {', '.join(allowed)}", field=f"{section}.{field}"
                )
    if OWN in spec.queries:
        raise InputError(f"is what the job's own query is called; take another name than {OWN}", field=f"queries.{OWN}")
    if not isinstance(spec.run.get("until_end", False), bool):
        raise InputError("is true or false", field="run.until_end")


def check_places(settings: Settings, inputs: Inputs, secrets: Secrets | None = None) -> None:
    """Refuse inputs from where none may be read; looked at again before each launch, since names and links move.

    Raises:
        Problem: names the setting that would allow it.
        InputError: executors could not read them.
    """
    for entry in inputs.relations.values():
        check_place(settings, entry)
    for name, entry in inputs.streams.items():
        check_place(settings, entry)
        check_client(settings, entry.get("client") or {}, f"/streams/{name}/client")
        check_client(settings, (secrets or {}).get(name) or {}, f"/streams/{name}/secrets")
    if settings.reaches_data or not inputs.stay:
        return
    place, what = next(iter(inputs.sent.items()), None) or (f"relations.{next(iter(inputs.relations))}", "a relation")
    raise InputError(
        f"reads {what[:200]}, which executors of {settings.spark_master} look for in the data folder of "
        f"{settings.machine}, and they have not got that; mount it at the same path on all machines of the cluster and "
        "set STREAMJOIN_SPARK_SHARED=true, or read such rows from Kafka",
        field=place,
    )


def check_store(settings: Settings, spec: JobSpec) -> None:
    """Refuse SQLite where several machines would write it, at once or in turn; looked at again before each launch.

    Where the administrator keeps results in it, that is for them to know.

    Raises:
        InputError: names the store that results are kept in otherwise.
    """
    if spec.store != "sqlite" or settings.result_store == "sqlite":
        return
    if settings.is_on_cluster:
        problem = f"a file that several machines of {settings.spark_master} would write at once"
    elif settings.state is not None:
        problem = "a file that would stay behind when the job goes on on another machine"
    else:
        return
    raise InputError(
        f"is sqlite, {problem}; write {settings.result_store}, in which this platform keeps results",
        field="results.store",
    )


def bound_apart(file: JoinFile, *, elsewhere: bool = False) -> Bound:
    """Bind a join file; databases are asked in processes of their own, as a view may take all time and memory there is.

    Of Parquet and Arrow files no rows are read here, which may unpack to as much.

    Args:
        elsewhere: its checkpoint is on another machine.
    Raises:
        InputError: it is wrong; the message names the place.
    """
    with _looks_apart():
        return bind(file, elsewhere=elsewhere)


def check_fits(bound: Bound) -> None:
    """Compare a job with its checkpoint, if it has one; databases are asked as by `bound_apart`.

    A damaged checkpoint is left to the job's driver, which names it.

    Raises:
        OtherJoinError: another join began the checkpoint.
    Cost: looks at the job's relations once more.
    """
    if not (bound.file.checkpoint / IDENTITY_FILE).exists():
        return  # before relations are looked at for nothing
    with _looks_apart(), suppress(StateError):
        check_continues(bound.job())


def _looks_apart() -> AbstractContextManager[None]:
    return nullcontext() if is_apart() else asked_by(_asked_apart)


def _asked_apart(look: Callable[..., pa.Schema], *given: Any) -> pa.Schema:
    return bounded(looks_for(), look, *given)


def join_file(settings: Settings, job: models.Job, secrets: Secrets) -> JoinFile:
    """The join file that a job is.

    Args:
        secrets: what is kept apart from the entries of streams and relations, by name; see `inputs.secrets_of`.
    Raises:
        InputError: it is wrong; the message names the field.
    """
    store = _store_kind(settings, job.spec, inputs_of(job), job.id, secrets)
    return _parse(settings, job.id, job.spec, inputs_of(job), secrets, store, job.incarnation)


def draft_file(settings: Settings, spec: JobSpec, inputs: Inputs, secrets: Secrets) -> JoinFile:
    """The join file of a job that is not there yet, for looking at its query and costs, and at what it keeps.

    Its store is one that every platform has, so that a draft is refused for what it keeps, and not for where.

    Raises:
        InputError: it is wrong; the message names the field.
    """
    # Executors that do not see our folders would not find SQLite, and then there is another store.
    elsewhere = "cassandra" if settings.cassandra_hosts else "hbase"
    return _parse(settings, "draft", spec, inputs, secrets, "sqlite" if settings.reaches_data else elsewhere)


def result_spec(settings: Settings, job: models.Job) -> StoreSpec:
    """How to open the store of a job's results."""
    file = join_file(settings, job, {})
    return store_spec(file.of(OWN) if file.queries else file)


def first_store(settings: Settings, spec: JobSpec) -> tuple[str, bool]:
    """The store that a new job is bound with, and whether its query, once bound, says which one it has in the end."""
    wanted = spec.store or settings.result_store
    if wanted != "auto":
        return wanted, False
    return ("cassandra" if settings.cassandra_hosts else "hbase"), True


def with_store_for(settings: Settings, spec: JobSpec, bound: Bound) -> JobSpec:
    """The spec of a new job with the store that suits it: it stays there, whatever the platform is set to later.

    Raises:
        InputError: this platform has no such store.
    """
    kind = _suiting(bound)
    _store(settings, kind)
    return spec.with_store(kind)


def _parse(
    settings: Settings,
    job_id: str,
    spec: JobSpec,
    inputs: Inputs,
    secrets: Secrets,
    store: str | None,
    incarnation: int = 0,
) -> JoinFile:
    check_spec(spec)
    folder = settings.job_folder(job_id)
    kept = {name: value for name, value in spec.results.items() if name != "store"}
    results: dict[str, Any] = {"discard": True}
    if store is not None:
        results = {**_store(settings, store), "job": results_name(job_id, incarnation), **kept}
    asked: dict[str, Any] = {"query": spec.query, "results": results}
    if spec.queries:
        asked = {"queries": {OWN: asked}}
        shared = {name: value for name, value in results.items() if name not in kept or name in _FOR_ALL}
        for name, query in spec.queries.items():
            place = {"job": results_name(job_id, incarnation, name)} if store is not None else {}
            asked["queries"][name] = {**query, "results": {**shared, **place}}
    content = {
        "streams": {
            name: _with_secrets(resolved(settings, entry), secrets.get(name, {}))
            for name, entry in inputs.streams.items()
        },
        "relations": {
            name: with_secrets(resolved(settings, entry), secrets.get(name)) for name, entry in inputs.relations.items()
        },
        **asked,
        "operator": dict(spec.operator),
        "run": {
            **run_of(settings, spec.run),
            "checkpoint": str(settings.checkpoint_folder(job_id, incarnation)),
            **({} if inputs.stay else _state(settings, job_id, incarnation)),
        },
    }
    return of_content(content, base=folder, name=job_id)


def _state(settings: Settings, job_id: str, incarnation: int) -> dict[str, Any]:
    place = settings.state_place(job_id, incarnation)
    if place is None:
        return {}
    # What a machine keeps is on its own disk: a folder of the data folder may be mounted on others, too.
    own = {} if settings.is_on_cluster else {"cache": {"path": str(settings.data.absolute() / "cache")}}
    return {"state": place, **own}


def _with_secrets(entry: Mapping[str, Any], secrets: Mapping[str, Any]) -> dict[str, Any]:
    shown = {name: value for name, value in entry.items() if name != PUSH}
    return {**shown, "client": {**entry.get("client", {}), **secrets}} if secrets else shown


def _store_kind(settings: Settings, spec: JobSpec, inputs: Inputs, job_id: str, secrets: Secrets) -> str:
    """Which store keeps the results: ordered keys for ranges, hashed ones for equalities (ESJ, materialisation)."""
    wanted = spec.store or settings.result_store
    if wanted != "auto":
        return wanted
    return _suiting(bound_apart(_parse(settings, job_id, spec, inputs, secrets, None)))


def _suiting(bound: Bound) -> str:
    # Of several queries its own one stands first.
    return "cassandra" if bound.plan.parts[0].plan.predicate.equalities else "hbase"


def _store(settings: Settings, kind: str) -> dict[str, Any]:
    match kind:
        case "sqlite":
            return {"store": "sqlite", "path": "results.db"}
        case "cassandra" if settings.cassandra_hosts:
            password = settings.cassandra_password
            return {
                "store": "cassandra", "hosts": list(settings.cassandra_hosts), "port": settings.cassandra_port,
                "keyspace": settings.cassandra_keyspace,
                **({"username": settings.cassandra_username} if settings.cassandra_username else {}),
                **({"password": password.get_secret_value()} if password else {}),
            }  # fmt: skip
        case "hbase" if settings.hbase_host:
            return {"store": "hbase", "hosts": [settings.hbase_host], "port": settings.hbase_port}
        case "cassandra" | "hbase":
            raise InputError(f"this platform has no {kind}; its administrator names its hosts", field="results.store")
        case _:
            raise InputError('is "sqlite", "cassandra", "hbase" or "auto"', field="results.store")
