"""Commands about versions of relations: of a join file's, and of those registered with the platform."""

from __future__ import annotations

import re
import time
from pathlib import Path
from typing import Annotated, Any

import cyclopts

from streamjoin.cli.joinfile import Set, load_join
from streamjoin.cli.platform.common import HERE, Output, Where, note, show
from streamjoin.errors import InputError

COLUMNS = ("relation", "version", "rows", "bad", "bytes", "read", "used", "batch", "state")
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,62}")
_What = Annotated[str, cyclopts.Parameter(help="A join file, or the name of a relation that is registered.")]
_Relation = Annotated[str | None, cyclopts.Parameter(help="Only this one of the join file's relations.")]


def relation_versions(
    what: _What, relation: _Relation = None, *, set: Set = None, output: Output = "table", where: Where = HERE
) -> None:
    """List versions of relations: rows, bytes, when each was read and first used, and its state.

    Of a registered relation, in each job that joins it, as every job reads it for itself.
    """
    if _NAME.fullmatch(what):
        _registered_versions(what, output, where)
        return
    from streamjoin.relations.history import History, versions_known
    from streamjoin.state.show import time_text

    folder, names = _relations_of(Path(what), relation, set)
    found = []
    for name in names:
        for known in versions_known(folder, name):
            times = {when: "" if (us := known[f"{when}_us"]) is None else time_text(us) for when in ("read", "used")}
            found.append({"relation": name, **known, **times})
    show([{column: row[column] for column in COLUMNS} for row in found], output, COLUMNS)
    for name in names if output == "table" else ():
        if (reading := History(folder, name).reading(time.time_ns() // 1_000)) is not None:
            _show_reading(name, reading.version, reading.rows)
        look = History(folder, name).look()
        if look.problem is not None:
            _show_problem(name, look.problem, time_text(look.looked_us or 0), look.failures)


def _registered_versions(relation: str, output: Output, where: Where) -> None:
    with where.client() as client:
        jobs = client.relations.versions(relation)
    columns = ("job", *COLUMNS[1:])
    found: list[dict[str, Any]] = [
        {"job": job["job"], **one, "read": one["read_at"] or "", "used": one["used_at"] or ""}
        for job in jobs
        for one in job["versions"]
    ]
    show([{column: row[column] for column in columns} for row in found], output, columns)
    for job in jobs if output == "table" else ():
        # A platform of an earlier version tells nothing of it.
        if (number := job.get("reading_version")) is not None and (rows := job.get("reading_rows")) is not None:
            _show_reading(f"{relation} in {job['job']}", number, rows)
        if job["problem"] is not None:
            _show_problem(f"{relation} in {job['job']}", job["problem"], job["looked_at"] or "",
                          job["refresh_failures"])  # fmt: skip


def _show_reading(what: str, version: int, rows: int) -> None:
    print(f"relation {what}: reading version {version:,}: {rows:,} rows so far")


def _show_problem(what: str, problem: str, at: str, failures: int) -> None:
    print(f"relation {what} stays as it is: {problem} ({at}; {failures:,} look{'' if failures == 1 else 's'} failed "
          "so far)")  # fmt: skip


def refresh_relation(what: _What, relation: _Relation = None, *, set: Set = None, where: Where = HERE) -> None:
    """Have the jobs that run look for a new version of a relation now."""
    if _NAME.fullmatch(what):
        with where.client() as client:
            jobs = client.relations.refresh(what)
        note(f"{', '.join(jobs)} will look at relation {what}" if jobs else f"no running job joins relation {what}")
        return
    from streamjoin.relations.history import History

    folder, names = _relations_of(Path(what), relation, set)
    for name in names:
        History(folder, name).ask()
        note(f"relation {name} will be looked at by the job, if it runs")


def _relations_of(file: Path, relation: str | None, set: Set) -> tuple[Path, list[str]]:
    """Where the versions are, and the relations that are meant.

    Raises:
        InputError: there is no such relation, or no job has read any.
    """
    from streamjoin.relations.history import relations_in
    from streamjoin.spec.job import tables_folder

    join = load_join(file, set)
    if not join.relations:
        raise InputError(f"{file} has no relations")
    if relation is not None and relation not in join.relations:
        raise InputError(f'there is no relation "{relation[:60]}"; relations are {", ".join(join.relations)}')
    folder = tables_folder(join.checkpoint)
    read = [name for name in relations_in(folder) if relation in (None, name)]
    if not read:
        raise InputError(f"no job has read {relation or 'them'} yet: nothing is in {folder}", field="run.checkpoint")
    return folder, read
