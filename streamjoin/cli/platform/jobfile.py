"""A join file as a job of the platform: its own query and further ones, and what the platform decides itself."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from streamjoin.errors import InputError

DRAFT = ("query", "queries", "operator", "results", "run")
CHANGE = (*DRAFT, "refresh_streams", "start_anew")
OWN = "main"
"""What the platform calls a job's own query."""
_KEPT = ("where", "select", "retain", "snapshot")
_ALIKE = ("retain", "snapshot")
"""Of `results:`, what a job has once for all of its queries."""
_FILES = ("parquet", "jsonl", "discard")


@dataclass(frozen=True, slots=True)
class JobFile:
    """What a file says of a job.

    Args:
        sections: as the API takes them: `query`, `queries`, `operator`, `results`, `run` and others of a change.
        own: what the file calls the job's own query; None where it has no name there.
        told: what the platform decides itself, a sentence each.
    """

    sections: dict[str, Any]
    own: str | None
    told: tuple[str, ...]


def draft_of(document: Mapping[str, Any], own: str | None) -> JobFile:
    """The sections of a job that is not there yet.

    Args:
        own: which of `queries:` is the job's own; unless given, `main`, or else the first that is not stopped.
    Raises:
        InputError: the file has no query, fields that a job has not, or what cannot go to the platform.
    """
    check_fields("a job's file", document, ("name", "streams", "relations", *DRAFT))
    if isinstance(document.get("query"), str):
        _check_no_own(own)
        name = None
    else:
        queries = _queries_of(document)
        name = _chosen(queries, own or _first(queries))
    return _of(document, name, DRAFT)


def change_of(document: Mapping[str, Any], job: Mapping[str, Any] | None, own: str | None) -> JobFile:
    """The sections of a change, from a file of only these or from the whole file of a job.

    Args:
        job: as it is; None where the file says nothing of streams or queries.
        own: which of `queries:` is the job's own; unless given, the one that has its text, or that is neither new nor
            one of its further queries.
    Raises:
        InputError: it has other fields, the name of another job, or leaves open which query is the job's own.
    """
    check_fields("a change", document, ("name", "streams", "relations", *CHANGE))
    if job is not None and document.get("name") not in (None, job["name"]):
        raise InputError(
            f'the file is of job "{document["name"]}", and this is "{job["name"]}"; a job keeps its name, so leave '
            "`name` out, or update the other one"
        )
    if isinstance(document.get("query"), str) or job is None or not document.get("queries"):
        _check_no_own(own)
        return _of(document, None, CHANGE)
    queries = _queries_of(document)
    return _of(document, _chosen(queries, own or _known(document, queries, job)), CHANGE)


def check_fields(what: str, document: Mapping[str, Any], fields: Sequence[str]) -> None:
    """Refuse fields that are none.

    Raises:
        InputError: names them.
    """
    if unknown := document.keys() - set(fields):
        raise InputError(f"{what} has {', '.join(fields)}; not {', '.join(sorted(map(str, unknown)))}")


def _check_no_own(own: str | None) -> None:
    if own is not None:
        raise InputError("--own names one of several queries, and this file has its own as query:; leave --own out")


def _queries_of(document: Mapping[str, Any]) -> dict[str, dict[str, Any]]:
    found = document.get("queries")
    if not found:
        raise InputError("a job's file needs a query: SELECT ONLINE ..., or queries: with at least one")
    if not isinstance(found, dict) or not all(isinstance(one, dict) for one in found.values()):
        raise InputError("queries: has a mapping for each name, such as {pairs: {query: SELECT ONLINE ...}}")
    return {str(name): one for name, one in found.items()}


def _chosen(queries: Mapping[str, Mapping[str, Any]], own: str | None) -> str | None:
    if own is None:
        return None
    if own not in queries:
        raise InputError(
            f"there is no query {own} in the file; give one of its queries with --own: {', '.join(queries)}"
        )
    if queries[own].get("stopped"):
        raise InputError(f"queries.{own} is stopped, and a job's own query runs; name another one with --own")
    return own


def _first(queries: Mapping[str, Mapping[str, Any]]) -> str:
    running = [name for name, one in queries.items() if not one.get("stopped")]
    if running:
        return OWN if OWN in running else running[0]
    raise InputError("all queries are stopped, and one is the job's own, which runs; leave `stopped` out of it")


def _known(document: Mapping[str, Any], queries: Mapping[str, Any], job: Mapping[str, Any]) -> str | None:
    """Which of the file's queries is the job's own; None where all are further ones."""
    further = job.get("queries") or {}
    new = [name for name in queries if name not in further]
    text = str(job["query"]).split()
    if same := [name for name in new if str(queries[name].get("query")).split() == text]:
        return same[0]
    if OWN in queries:
        return OWN
    if document.get("streams") is None or not new:
        return None
    if len(new) == 1 and further.keys() <= queries.keys():
        return new[0]
    raise InputError(f"which query is the job's own? say --own and one of {', '.join(new)}")


def _of(document: Mapping[str, Any], own: str | None, fields: Iterable[str]) -> JobFile:
    found = {field: document[field] for field in fields if document.get(field) is not None}
    told: list[str] = []
    results = document.get("results")
    if own is not None:
        if results is not None:
            raise InputError("results: belongs inside each of the queries, as queries.NAME.results")
        found["query"] = document["queries"][own].get("query")
        results = document["queries"][own].get("results")
    kept = _results(results, told, own)
    found.pop("results", None)
    if kept is not None:
        found["results"] = kept  # also when nothing is left of it: a job keeps what a change does not mention
    if isinstance(found.get("queries"), dict):
        found["queries"] = {
            str(name): _further(str(name), one, kept, told) for name, one in found["queries"].items() if name != own
        }
        if not found["queries"]:
            del found["queries"]
    if isinstance(run := found.get("run"), dict) and "checkpoint" in run:
        told.append("run.checkpoint is not taken: the platform chooses where a job's state is")
        found["run"] = {field: value for field, value in run.items() if field != "checkpoint"}
    if own is not None:
        told.insert(0, f"{own} is the job's own query: ask its results without --of or :{own}, as those of the job")
    return JobFile(found, own, tuple(told))


def _results(given: Any, told: list[str], query: str | None) -> Any:
    """What a job may say of its results, of what a join file says."""
    if not isinstance(given, dict):
        return given
    if query is None and not any(field in given for field in _FILES):
        return given
    _tell(given, told, query)
    return {field: given[field] for field in _KEPT if field in given}


def _further(name: str, one: Any, own: Any, told: list[str]) -> Any:
    """A query beside the job's own: its results are kept as those of the job."""
    if not isinstance(one, dict) or "results" not in one:
        return one
    results = one["results"] if isinstance(one["results"], dict) else {}
    for field in _KEPT:
        same = field in _ALIKE and results.get(field) == (own or {}).get(field)
        if results.get(field) is not None and not same:
            out = (
                "write the same in all queries" if field in _ALIKE else "write it in the query, or choose it with --own"
            )
            raise InputError(
                f"queries.{name}.results.{field} cannot go to the platform, where only the job's own query has it; "
                f"{out}"
            )
    _tell(results, told, name)
    return {field: value for field, value in one.items() if field != "results"}


def _tell(results: Mapping[str, Any], told: list[str], query: str | None) -> None:
    if dropped := [field for field in results if field not in _KEPT]:
        place = "results" if query is None else f"queries.{query}.results"
        *others, last = (f"{place}.{field}" for field in dropped)
        what = f"{', '.join(others)} and {last} are" if others else f"{last} is"
        told.append(
            f"{what} not taken: the platform keeps all results in its store; streamjoin ask shows them, and writes "
            "files"
        )
