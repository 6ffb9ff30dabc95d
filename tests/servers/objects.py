"""A store of objects that is slow, fails or lies, as a PyArrow file system over a folder."""

from __future__ import annotations

import shutil
import threading
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pyarrow as pa
from pyarrow import fs

from streamjoin.state.root import ObjectRoot


@dataclass
class Moods:
    """What the store does to the calls it is asked; each takes the kind of call and the path.

    Args:
        before: may raise or wait before a call is done.
        after: the same once it is done, so that the caller does not hear of it.
        given: what a read gives in place of an object's content.
    """

    before: Callable[[str, str], None] = lambda kind, path: None
    after: Callable[[str, str], None] = lambda kind, path: None
    given: Callable[[str, bytes], bytes] = lambda path, content: content
    calls: Counter[str] = field(default_factory=Counter)
    lock: threading.Lock = field(default_factory=threading.Lock)


class ObjectHandler(fs.FileSystemHandler):  # type: ignore[misc]  # PyArrow ships no types
    """Objects in a folder: a put is seen whole or not at all, and a listing comes in no order."""

    def __init__(self, folder: Path, moods: Moods) -> None:
        self.folder = folder
        self.moods = moods

    def _asked(self, kind: str, path: str, work: Callable[[], Any]) -> Any:
        with self.moods.lock:
            self.moods.calls[kind] += 1
        self.moods.before(kind, path)
        done = work()
        self.moods.after(kind, path)
        return done

    def carried(self, path: str, size: int) -> None:
        """So many bytes are about to be put."""

    def open_output_stream(self, path: str, metadata: Any) -> pa.PythonFile:
        return pa.PythonFile(_Put(self, path), mode="w")

    def open_input_stream(self, path: str) -> pa.PythonFile:
        content = self._asked("get", path, (self.folder / path).read_bytes)
        return pa.PythonFile(pa.BufferReader(self.moods.given(path, content)), mode="r")

    def open_input_file(self, path: str) -> pa.PythonFile:
        return self.open_input_stream(path)

    def delete_file(self, path: str) -> None:
        self._asked("remove", path, (self.folder / path).unlink)

    def get_file_info_selector(self, selector: fs.FileSelector) -> list[fs.FileInfo]:
        def listed() -> list[fs.FileInfo]:
            paths = [path for path in (self.folder / selector.base_dir).rglob("*") if path.is_file()]
            paths.sort(key=lambda path: hash(path.name))
            return [fs.FileInfo(str(path.relative_to(self.folder)), fs.FileType.File) for path in paths]

        found: list[fs.FileInfo] = self._asked("list", selector.base_dir, listed)
        return found

    def get_type_name(self) -> str:
        return "objects"

    def normalize_path(self, path: str) -> str:
        return path

    def get_file_info(self, paths: list[str]) -> list[fs.FileInfo]:
        raise NotImplementedError

    def create_dir(self, path: str, recursive: bool) -> None:
        raise NotImplementedError

    def delete_dir(self, path: str) -> None:
        self._asked("remove", path, lambda: shutil.rmtree(self.folder / path))

    def delete_dir_contents(self, path: str, missing_dir_ok: bool = False) -> None:
        raise NotImplementedError

    def delete_root_dir_contents(self) -> None:
        raise NotImplementedError

    def move(self, src: str, dest: str) -> None:
        raise NotImplementedError

    def copy_file(self, src: str, dest: str) -> None:
        raise NotImplementedError

    def open_append_stream(self, path: str, metadata: Any) -> pa.PythonFile:
        raise NotImplementedError


class _Put:
    """What is written appears as the stream is closed."""

    def __init__(self, handler: ObjectHandler, path: str) -> None:
        self.handler = handler
        self.path = path
        self.content: list[bytes] = []
        self.closed = False

    def write(self, data: bytes) -> int:
        self.content.append(data)
        return len(data)

    def flush(self) -> None:
        pass

    def writable(self) -> bool:
        return True

    def close(self) -> None:
        if self.closed:
            return
        self.closed = True
        self.handler.carried(self.path, sum(map(len, self.content)))
        self.handler._asked("put", self.path, self._put)

    def _put(self) -> None:
        path = self.handler.folder / self.path
        path.parent.mkdir(parents=True, exist_ok=True)
        temporary = path.with_name(f"{path.name}.{threading.get_ident()}.putting")
        with open(temporary, "wb") as file:
            file.writelines(self.content)
        temporary.replace(path)


@dataclass(frozen=True, slots=True)
class FolderRoot(ObjectRoot):
    """A root in a folder; `uri` names it as `folder:///path`."""

    def filesystem(self) -> tuple[fs.FileSystem, str]:
        handler = ObjectHandler(Path("/"), MOODS.setdefault(self.uri, Moods()))
        return fs.PyFileSystem(handler), self.uri.removeprefix("folder:///")


MOODS: dict[str, Moods] = {}
"""By URI, in this process."""


def folder_root(folder: Path, cache: Path | None = None, **more: Any) -> FolderRoot:
    """A store of objects in a folder, with a cache beside it."""
    return FolderRoot(f"folder://{folder.absolute()}", cache or folder.with_name(f"{folder.name}-cache"), **more)
