"""Streams and relations of a job's file: they are registered with the job, or compared with what is registered."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import quote, urlsplit

from streamjoin.cli.platform.common import STDIN, note, warn
from streamjoin.errors import InputError
from streamjoin.loopback import is_loopback

if TYPE_CHECKING:
    from streamjoin.client import Client

UPLOAD = "upload:"
_KINDS = {"streams": "stream", "relations": "relation"}


@dataclass(frozen=True, slots=True)
class Entry:
    """A stream or relation of a file.

    Args:
        section: streams or relations.
        spec: without its secrets, which are apart; a path is absolute.
    """

    section: str
    name: str
    spec: Any
    secrets: dict[str, Any]

    @property
    def what(self) -> str:
        """It, for people."""
        return f"{_KINDS[self.section]} {self.name}"


def entries_of(document: Mapping[str, Any], file: str, host: str) -> list[Entry]:
    """The streams and relations that a file describes.

    Args:
        file: its path; relative paths in it start from its folder, as for `streamjoin run`.
        host: the platform's address; its files are ours only if it is on this machine.
    Raises:
        InputError: a path is relative, and the platform is elsewhere.
    """
    from streamjoin.sources.credentials import split, split_relation

    found = []
    for section, apart in (("streams", split), ("relations", split_relation)):
        given = document.get(section)
        for name, spec in given.items() if isinstance(given, dict) else ():
            shown, secrets = apart(spec) if isinstance(spec, dict) else (spec, {})
            if isinstance(shown, dict):
                shown = _absolute(shown, f"{section}.{name}", file, host)
            found.append(Entry(section, str(name), shown, dict(secrets)))
    return found


@contextmanager
def registered(client: Client, entries: list[Entry]) -> Iterator[None]:
    """Register those that are not there yet; if that fails, or what is done with them, these are removed again."""
    from streamjoin.client import NotFound, StreamJoinApiError

    made: list[tuple[Any, str]] = []
    try:
        for entry in entries:
            group = getattr(client, entry.section)
            try:
                there = group.get(entry.name)
                other = _differs(entry, there["spec"])
                if other:
                    warn(f"{entry.what} is registered already, with another {other}, and stays as it is")
                else:
                    note(f"{entry.what} is registered already")
            except NotFound:
                try:
                    made.append((group, group.create(entry.name, entry.spec, secrets=entry.secrets or None)["id"]))
                except StreamJoinApiError as refused:
                    refused.detail = f"{entry.section}.{entry.name}: {refused.detail}"
                    raise
                note(f"{entry.what} is registered")
        yield
    except BaseException:
        for group, id in reversed(made):
            with suppress(StreamJoinApiError):
                group.delete(id)
        raise


def check_registered(client: Client, entries: list[Entry], otherwise: str) -> None:
    """Refuse a file whose streams and relations are not those that the platform knows.

    Args:
        otherwise: what else can be done about one that is not registered.
    Raises:
        InputError: names those that are missing, or one that differs, and what to do.
    """
    from streamjoin.client import NotFound

    missing = []
    for entry in entries:
        try:
            there = getattr(client, entry.section).get(entry.name)
        except NotFound:
            missing.append(entry)
            continue
        if other := _differs(entry, there["spec"]):
            raise InputError(
                f"{entry.what} is registered with another {other} than in this file; make the file say the same, or "
                f"change what is registered with streamjoin {entry.section} update {entry.name} -f FILE, which jobs "
                "take over with refresh_streams: true"
            )
    if missing:
        is_one = len(missing) == 1
        raise InputError(
            f"{', '.join(entry.what for entry in missing)} {'is' if is_one else 'are'} not registered yet, and this "
            f"looks at what is; register {'it' if is_one else 'each'} with streamjoin "
            f"{missing[0].section} create {missing[0].name} -f FILE, whose file is the entry alone, {otherwise}"
        )


def _differs(entry: Entry, there: Mapping[str, Any]) -> str:
    """Which fields do, for people."""
    here = json.loads(json.dumps(entry.spec, default=str))
    if not isinstance(here, dict):
        return "entry"
    return ", ".join(sorted(name for name in here.keys() | there.keys() if here.get(name) != there.get(name)))


def _absolute(spec: dict[str, Any], place: str, file: str, host: str) -> dict[str, Any]:
    from streamjoin.sources.database import Database

    path, url = spec.get("path"), spec.get("url")
    if isinstance(path, str) and not path.startswith(("/", UPLOAD)):
        return {**spec, "path": _resolved(path, f"{place}.path", file, host)}
    if isinstance(url, str) and url.startswith("sqlite:"):
        try:
            inner = Database(url).file
        except InputError:
            return spec  # the platform says what is wrong with it
        if inner is not None and not inner.startswith("/"):
            return {**spec, "url": f"sqlite:///{quote(_resolved(inner, f'{place}.url', file, host))}"}
    return spec


def _resolved(path: str, place: str, file: str, host: str) -> str:
    if not is_loopback(urlsplit(host).hostname or ""):
        raise InputError(
            f"{place}: {path[:200]} is relative, and the platform at {host} has folders of its own; write the path "
            "that it has there, which begins with /, or send the file with streamjoin uploads add and write upload:NAME"
        )
    folder = Path() if file == STDIN else Path(file).parent
    return str((folder / Path(path).expanduser()).absolute())
