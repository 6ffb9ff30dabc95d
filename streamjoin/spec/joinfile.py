"""The join file: one YAML file that says everything about one join.

The models are the schema; every error names the field, what is wrong with it and what would be right.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Annotated, Any

from pydantic import Field, ValidationError

from streamjoin.errors import InputError, UnsupportedError
from streamjoin.plan.window import format_us
from streamjoin.results.stores.registry import STORES
from streamjoin.settings.mistakes import first_error
from streamjoin.settings.places import fields_at
from streamjoin.settings.setting import Settings, setting
from streamjoin.settings.text import read_yaml
from streamjoin.settings.values import cut, shown
from streamjoin.spec.checks import CACHE, CHECKPOINT, NAMED, check_path, check_relation, check_results, check_stream
from streamjoin.spec.cluster import LOCAL, Cluster, check_cluster, slots_of
from streamjoin.spec.sections import CacheFile, OperatorFile, QueryFile, RelationFile, ResultsFile, RunFile, StreamFile
from streamjoin.state.root import ObjectRoot, Root, root_of
from streamjoin.state.uris import check_uri

FILE_BYTES_MAX = 1 << 20


class Sections(Settings):
    """What stands in a join file.

    Args:
        queries: several queries over the same streams, in place of `query` and `results`.
    """

    streams: Annotated[dict[str, StreamFile], setting("name -> stream")]
    relations: Annotated[
        dict[str, RelationFile], setting("name -> relation: finite tables, of files or of a database")
    ] = Field(default_factory=dict)
    query: Annotated[str | None, setting("a SELECT ONLINE over the streams and relations")] = None
    queries: Annotated[
        dict[str, QueryFile] | None, setting("name -> query: several in one job, in place of query and results")
    ] = None
    operator: Annotated[OperatorFile, setting("which operator, and its knobs")] = OperatorFile()
    results: Annotated[ResultsFile, setting("where results go")] = ResultsFile(discard=True)
    run: Annotated[RunFile, setting("how to run", keeps_state=True)] = RunFile()


class JoinFile(Sections):
    """A whole join file.

    Args:
        base: the folder that relative paths start from: the file's own.
        name: the file's, without its suffix.
    """

    base: Path = Path()
    name: str = "join"

    def resolve(self, path: str) -> Path:
        """A path of the file, absolute."""
        return (self.base / os.path.expanduser(path)).absolute()

    @property
    def slots(self) -> int:
        """Spark partitions of the unit stage; unless set one a core, of all executors where that is known."""
        return self.run.slots or slots_of(self.run.executors) or len(os.sched_getaffinity(0))

    @property
    def cluster(self) -> Cluster | None:
        """Where tasks run; None for this machine."""
        run = self.run
        return None if run.master == LOCAL else Cluster(run.master, run.executors, run.driver_host)

    @property
    def checkpoint(self) -> Path:
        """The job's directory."""
        return self.resolve(self.run.checkpoint or f".streamjoin/{self.name}")

    @property
    def states(self) -> Root | None:
        """Where units' state is, if not in the checkpoint."""
        if self.run.state is None:
            return None
        return root_of(self.run.state, self.resolve, self.run.cache.path, self.run.cache.size)

    def of(self, query: str) -> JoinFile:
        """One of the queries as a file of its own, with the checkpoint of all.

        Raises:
            InputError: there is no such query.
        """
        if query not in (self.queries or {}):
            known = ", ".join(self.queries or {})
            raise InputError(f'there is no query "{cut(query)}"; '
                             + (f"queries are {known}" if known else "this file has one, without a name"))  # fmt: skip
        assert self.queries is not None
        own = {
            "name": f"{self.name}.{query}",
            "query": self.queries[query].query,
            "queries": None,
            "results": self.queries[query].results,
            "run": self.run.model_copy(update={"checkpoint": str(self.checkpoint)}),
        }
        return self.model_copy(update=own)


def load(path: Path, overrides: Mapping[str, str] | None = None) -> JoinFile:
    """Read a join file.

    Args:
        overrides: dotted field -> YAML text, as `--set operator.name=matrix` gives them.
    Raises:
        InputError: it cannot be read or is wrong.
    """
    try:
        # Before it is opened: opening a pipe waits, and a device has no end.
        if path.exists() and not path.is_file():
            raise InputError(f"{path} is {'a folder' if path.is_dir() else 'no file'}; a join file is a short text")
        with open(path, "rb") as file:
            content = file.read(FILE_BYTES_MAX + 1)
    except FileNotFoundError:
        raise InputError(f"there is no file {path}") from None
    except (OSError, ValueError) as cause:
        raise InputError(f"{shown(str(path))} cannot be read: {_reason(cause)}") from None
    if len(content) > FILE_BYTES_MAX:
        raise InputError(f"{path} is larger than 1 MiB; a join file is a short text")
    try:
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError as cause:
        raise InputError(f"{path} is not text: byte {cause.start} is not UTF-8") from None
    return parse(text, base=path.absolute().parent, name=path.stem, overrides=overrides)


def parse(
    text: str, *, base: Path = Path(), name: str = "join", overrides: Mapping[str, str] | None = None
) -> JoinFile:
    """A join file from its text.

    Raises:
        InputError: it is wrong; YAML errors carry line and column.
    """
    content = read_yaml(text)
    if content is None:
        raise InputError(f"the join file is empty; it needs {_SECTIONS}")
    if not isinstance(content, dict):
        raise InputError(f"a join file is a mapping with {_SECTIONS}, not {shown(content)}")
    for field, value in (overrides or {}).items():
        _override(content, field, value)
    return of_content(content, base=base, name=name)


def of_content(content: Mapping[str, Any], *, base: Path = Path(), name: str = "join") -> JoinFile:
    """A join file from what its text says, such as a program has it that need not write YAML first.

    Raises:
        InputError: it is wrong; the message names the field.
    """
    for own in ("base", "name"):  # where the file is, and what it is called: not for the file to say
        if own in content:
            raise InputError(f"there is no such field; fields here are {', '.join(fields_at(Sections, []))}", field=own)
    file = _validated({**content, "base": base, "name": name})
    _check(file)
    return file


def of_relations(relations: Mapping[str, Any], streams: Iterable[str]) -> JoinFile:
    """A join file of relations alone, for streams that are none of a file's; paths start from the working folder.

    Args:
        relations: as `relations:` of a join file has them.
        streams: names that are taken.
    Raises:
        InputError: it is wrong; the message names the field.
    """
    file = _validated({"streams": {}, "relations": relations})
    _check_relations(file, streams)
    return file


def _validated(content: Mapping[str, Any]) -> JoinFile:
    try:
        return JoinFile.model_validate(content)
    except ValidationError as wrong:
        raise first_error(wrong, Sections) from None


_SECTIONS = "streams and query or queries, and may have relations, operator, results and run"


def _override(content: dict[str, Any], field: str, value: str) -> None:
    # Spark's settings have dots of their own.
    path = field.split(".", 2 if field.startswith("run.spark.") else -1)
    if not all(path):
        raise InputError(f"--set takes FIELD=VALUE with a field such as operator.name, not {shown(field)}")
    place: Any = content
    for depth, parent in enumerate(path[:-1]):
        if depth == 1 and path[0] in NAMED and isinstance(place, dict) and parent not in place:
            there = f"{path[0]} are {', '.join(map(str, place))}" if place else "there are none"
            raise InputError(f"there is no such {NAMED[path[0]]}; {there}", field=cut(field))
        if isinstance(place, dict) and place.get(parent) is None:  # also where a section is there, but empty
            place[parent] = {}
        place = place[parent] if isinstance(place, dict) else None
    if not isinstance(place, dict):
        raise InputError("there is no such field to set", field=cut(field))
    try:
        place[path[-1]] = value if path[-1] == "query" else read_yaml(value)
    except InputError:  # a text that is no YAML
        place[path[-1]] = value


def _reason(cause: Exception) -> str:
    return str(getattr(cause, "strerror", None) or cause)


_KNOBS_TO_COME = ("unit_capacity",)


def _check(file: JoinFile) -> None:
    if file.queries is not None:
        _check_queries(file)
    elif not file.query:
        raise InputError("is missing; write a SELECT ONLINE", field="query")
    if not file.streams and not file.relations:  # whose query says better what is missing
        raise InputError("is empty; name the streams of the query", field="streams")
    for name, stream in file.streams.items():
        check_stream(name, stream, file.run)
    _check_relations(file, file.streams)
    for knob in _KNOBS_TO_COME:
        if knob in file.operator.knobs:
            raise UnsupportedError(f"{knob} is not supported by this version", field=f"operator.{knob}")
    check_results(file.results, "results")
    if file.run.checkpoint is not None:
        check_path(file.run.checkpoint, "run.checkpoint", CHECKPOINT)
    check_cluster(file.run)
    _check_state(file)


def _check_state(file: JoinFile) -> None:
    if file.run.state is not None:
        check_path(file.run.state, "run.state", None)
    if file.run.cache.path is not None:
        check_path(file.run.cache.path, "run.cache.path", CACHE)
    states = file.states
    if file.run.state is not None and isinstance(states, ObjectRoot):
        check_uri(file.run.state)
    if file.run.cache != CacheFile() and not isinstance(states, ObjectRoot):
        raise InputError(
            "keeps what a store has, and this state is a folder; leave it out, or write run.state: s3://bucket/job",
            field="run.cache",
        )


_QUERY = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]{0,62}")


def _check_queries(file: JoinFile) -> None:
    assert file.queries is not None
    for field in sorted(file.model_fields_set & {"query", "results"}):
        raise InputError(f"belongs to each of the queries, as queries.NAME.{field}", field=field)
    if not file.queries:
        raise InputError("is empty; name the queries, such as {pairs: {query: ..., results: ...}}", field="queries")
    if file.operator.main is not None:
        raise InputError("names a conjunct of one query, and this file has several; leave it out",
                         field="operator.main")  # fmt: skip
    if all(query.stopped for query in file.queries.values()):
        raise InputError("are all stopped; leave one, or stop the job", field="queries")
    targets: dict[tuple[Any, ...], str] = {}
    for name, query in file.queries.items():
        place = f"queries.{cut(name)}"
        if not _QUERY.fullmatch(name):
            raise InputError("a query's name is letters, digits, _ and -, 63 at most", field=place)
        if not query.query.strip():
            raise InputError("is empty; write a SELECT ONLINE", field=f"{place}.query")
        check_results(query.results, f"{place}.results")
        if (target := _target(file, name, query.results)) is None:
            continue
        if twin := targets.get(target):
            raise InputError(f"is where the results of {twin} go; give each query a place of its own",
                             field=f"{place}.results")  # fmt: skip
        targets[target] = name


def _target(file: JoinFile, name: str, results: ResultsFile) -> tuple[Any, ...] | None:
    """Where results go, so that two queries do not write into each other's."""
    if results.parquet is not None:
        return ("file", os.path.realpath(file.resolve(results.parquet)))
    if results.jsonl is not None:
        return ("file", results.jsonl if results.jsonl == "-" else os.path.realpath(file.resolve(results.jsonl)))
    if results.store is None:
        return None
    where = STORES[results.store].spec(results, file.resolve)
    return (where, results.job or f"{file.name}.{name}")


def _check_relations(file: JoinFile, streams: Iterable[str]) -> None:
    """Fields of relations go together, and a query's names lead to one thing each, whatever their case."""
    for name, relation in file.relations.items():
        check_relation(name, relation)
    names: dict[str, str] = {}
    for section, given in zip(NAMED, (streams, file.relations), strict=True):
        for name in given:
            if twin := names.get(name.lower()):
                how = "is the name of a stream, too" if twin == name else f'differs from "{twin}" by case only'
                raise InputError(f"{how}; rename one", field=f"{section}.{name}")
            names[name.lower()] = name


def describe(file: JoinFile) -> str:
    """A line a stream, for people."""
    return "\n".join(
        f"{name}: {stream.source}, time {stream.time}, delay {format_us(stream.delay)}"
        for name, stream in file.streams.items()
    )
