"""Files and folders of this machine that commands write to."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any

import cyclopts

from streamjoin.spec.checks import check_path

_WRITTEN = "this is written to a folder of this machine; name one, and copy it there afterwards"


def _path(kind: Any, tokens: Sequence[cyclopts.Token]) -> Path:
    # Before it is a path, which has no // any more.
    check_path(tokens[0].value, tokens[0].keyword or "FILE", _WRITTEN)
    return Path(tokens[0].value)


Written = Annotated[Path, cyclopts.Parameter(converter=_path)]
"""A file or folder that a command writes."""
WrittenIfGiven = Annotated[Path | None, cyclopts.Parameter(converter=_path)]
"""The same, where it may be left out."""
