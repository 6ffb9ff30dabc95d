"""A file is held by one at a time."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from streamjoin.errors import InputError
from streamjoin.lockfile import locked


def test_the_second_is_told_who_holds_it_and_the_next_gets_it(tmp_path: Path) -> None:
    path = tmp_path / "lock"
    path.write_text("the number of a process that is gone")
    with locked(path, str), pytest.raises(InputError, match=f"^{os.getpid()}; ask it$"):  # noqa: SIM117
        with locked(path, lambda pid: f"{pid}; ask it"):
            pass
    with locked(path, str):
        assert path.read_text() == str(os.getpid())
