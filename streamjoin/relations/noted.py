"""Which version of each relation a batch joins, noted by its own tasks.

    <folder>/<batch>/versions.json    name -> version; there, whole, as of the first task that asked

A query over DataFrames logs its offsets wherever whoever starts it says, and no source of ours is in there to log
versions with them. So the first task of a batch that must know takes the newest versions, and all others join those,
too, as does every repetition of the batch.
"""

from __future__ import annotations

import errno
import json
import os
import shutil
import uuid
from collections.abc import Collection, Iterable
from pathlib import Path

from streamjoin.durable import have_folder, sync_folder, write_durably
from streamjoin.errors import StateError
from streamjoin.relations.versions import Versions

_FILE = "versions.json"
_TAKEN = (errno.ENOTEMPTY, errno.EEXIST)


class Noted:
    """What the batches of one job have noted.

    Args:
        tables: where the versions of its relations are.
        kept: how many batches may be repeated; what those before them noted is forgotten.
        sync: see `Versions`.
    """

    def __init__(self, folder: Path, tables: Path, kept: int, *, sync: bool = True) -> None:
        self.folder, self.tables, self.kept, self.sync = folder, tables, kept, sync

    def versions(self, batch: int, relations: Iterable[str]) -> dict[str, int]:
        """What a batch joins, by relation, in every task and every attempt.

        Raises:
            StateError: what was noted is damaged.
        Cost: one small file; the first task of a batch lists a folder a relation, and removes what no batch needs.
        """
        found = self._read(batch)
        if found is None:
            newest = {name: Versions(self.tables, name).newest() for name in sorted(relations)}
            is_first, found = self._put(batch, newest), self._read(batch)
            if is_first:
                self._forget(batch, newest)
        elif self.sync:  # whoever put it may have died before it did
            sync_folder(self.folder)
        assert found is not None
        return found

    def _read(self, batch: int) -> dict[str, int] | None:
        path = self.folder / str(batch) / _FILE
        try:
            return {str(name): int(version) for name, version in json.loads(path.read_text()).items()}
        except FileNotFoundError:
            return None
        except (ValueError, TypeError, AttributeError):
            raise StateError(
                f"{path} is damaged; restore the checkpoint from a copy or start with another one"
            ) from None

    def _put(self, batch: int, versions: dict[str, int]) -> bool:
        """Note versions unless another task has; whether this one did."""
        have_folder(self.folder)
        making = self.folder / f".{batch}.{uuid.uuid4().hex}"
        making.mkdir()
        write_durably(making / _FILE, json.dumps(versions).encode())
        if self.sync:
            sync_folder(making)
        try:
            os.rename(making, self.folder / str(batch))  # a folder with something in it is never replaced
        except OSError as cause:
            if cause.errno not in _TAKEN:
                raise
            shutil.rmtree(making, ignore_errors=True)
            return False
        finally:
            if self.sync:
                sync_folder(self.folder)
        return True

    def _forget(self, batch: int, relations: Collection[str]) -> None:
        """Remove what no batch that may be repeated needs; by one task a batch."""
        needed: dict[str, set[int]] = {name: set() for name in relations}
        for path in self.folder.iterdir():
            number = int(path.name.strip(".").partition(".")[0])
            if number <= batch - self.kept or (path.name.startswith(".") and number < batch):
                shutil.rmtree(path, ignore_errors=True)
                continue
            for name, version in (self._read(number) or {}).items():
                needed.setdefault(name, set()).add(version)
        for name, versions in needed.items():
            Versions(self.tables, name).keep(versions)
