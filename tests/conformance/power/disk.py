"""A disk that keeps only what was synced, as POSIX has it.

The content of a file lasts once the file is synced, and a name once its folder is. Nothing else does: syncing a file
does not keep its name, and syncing a folder does not keep the folder's own. File systems keep more, each as it likes.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath


@dataclass
class File:
    """A file: what readers see, and what is on disk."""

    data: bytearray = field(default_factory=bytearray)
    synced: bytes = b""

    @property
    def is_synced(self) -> bool:
        """Whether all of it is on disk."""
        return self.synced == self.data


@dataclass
class Folder:
    """A folder: what readers see, what is on disk, and the changes in between, oldest first."""

    names: dict[str, File | Folder] = field(default_factory=dict)
    synced: dict[str, File | Folder] = field(default_factory=dict)
    changes: list[tuple[tuple[str, File | Folder | None], ...]] = field(default_factory=list)

    def change(self, *entries: tuple[str, File | Folder | None]) -> None:
        """Give names to files, or take them away, in one step."""
        _apply(self.names, entries)
        self.changes.append(entries)

    def sync(self) -> None:
        """Put all names on disk."""
        self.synced, self.changes = dict(self.names), []


Tree = dict[str, "bytes | Tree"]
"""A folder's names, each with content or a folder."""
Loss = Callable[["Disk"], Tree]


class Disk:
    """A folder that was empty, and lasts.

    Every change is one method; paths are relative to the folder.
    """

    def __init__(self) -> None:
        self.root = Folder()
        self.syncs = 0

    def find(self, path: PurePosixPath) -> File | Folder | None:
        """What has a name now."""
        found: File | Folder | None = self.root
        for name in path.parts:
            found = found.names.get(name) if isinstance(found, Folder) else None
        return found

    def file(self, path: PurePosixPath) -> File:
        """A file that is there."""
        found = self.find(path)
        assert isinstance(found, File), path
        return found

    def create(self, path: PurePosixPath, node: File | Folder) -> None:
        """Give a name to what is new."""
        self._parent(path).change((path.name, node))

    def rename(self, source: PurePosixPath, target: PurePosixPath) -> None:
        """Give another name; of two folders each has a change of its own, and may be on disk without the other."""
        node = self.find(source)
        assert node is not None, source
        if source.parent == target.parent:
            self._parent(source).change((source.name, None), (target.name, node))
        else:
            self._parent(target).change((target.name, node))
            self._parent(source).change((source.name, None))

    def remove(self, path: PurePosixPath) -> None:
        """Take a name away."""
        self._parent(path).change((path.name, None))

    def sync(self, path: PurePosixPath) -> None:
        """Put a file's content on disk, or a folder's names."""
        found = self.find(path)
        assert found is not None, path
        self.syncs += 1
        if isinstance(found, Folder):
            found.sync()
        else:
            found.synced = bytes(found.data)

    def _parent(self, path: PurePosixPath) -> Folder:
        found = self.find(path.parent)
        assert isinstance(found, Folder), path
        return found


def nothing_more(disk: Disk) -> Tree:
    """Only what was synced."""
    return _tree(disk.root, lambda folder: folder.synced, lambda file: file.synced)


def names_only(disk: Disk) -> Tree:
    """All names, the latest renames too, of files without the content that was not synced."""
    return _tree(disk.root, lambda folder: folder.names, lambda file: file.synced)


def zeros(disk: Disk) -> Tree:
    """All names, and files as long as they were; what was not synced of them is zeros."""

    def content(file: File) -> bytes:
        return file.synced[: len(file.data)].ljust(len(file.data), b"\0")

    return _tree(disk.root, lambda folder: folder.names, content)


def everything(disk: Disk) -> Tree:
    """What readers see; so a process that is killed leaves it."""
    return _tree(disk.root, lambda folder: folder.names, lambda file: bytes(file.data))


def some(seed: int) -> Loss:
    """Of each folder the oldest of its changes, and of each file the beginning of what is new in it, by chance."""

    def loss(disk: Disk) -> Tree:
        chance = random.Random(seed)

        def names(folder: Folder) -> dict[str, File | Folder]:
            found = dict(folder.synced)
            for entries in folder.changes[: chance.randint(0, len(folder.changes))]:
                _apply(found, entries)
            return found

        def content(file: File) -> bytes:
            data, cut = bytes(file.data), chance.randint(0, len(file.data))
            part = data[:cut] + file.synced[cut:]
            return chance.choice([file.synced, data, part, part.ljust(len(data), b"\0")])

        return _tree(disk.root, names, lambda file: file.synced if file.is_synced else content(file))

    return loss


def build(tree: Tree, folder: Path) -> None:
    """Make the folder."""
    folder.mkdir()
    for name, content in tree.items():
        if isinstance(content, bytes):
            (folder / name).write_bytes(content)
        else:
            build(content, folder / name)


def _apply(names: dict[str, File | Folder], entries: tuple[tuple[str, File | Folder | None], ...]) -> None:
    for name, node in entries:
        if node is None:
            names.pop(name, None)
        else:
            names[name] = node


def _tree(
    folder: Folder, names: Callable[[Folder], dict[str, File | Folder]], content: Callable[[File], bytes]
) -> Tree:
    return {
        name: _tree(node, names, content) if isinstance(node, Folder) else content(node)
        for name, node in sorted(names(folder).items())
    }
