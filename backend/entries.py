"""What entries of a join file that people register have in common, be they streams or relations."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from backend.problems import Place, Problem
from streamjoin.errors import InputError, RunError

SPEC_BYTES_MAX = 32 << 10
"""Of an entry as JSON; one answer lists up to two hundred of them."""
NAME_MAX = 63
"""Letters of a name that queries have for a stream or relation."""
_NAME = re.compile(rf"[A-Za-z_][A-Za-z0-9_]{{0,{NAME_MAX - 1}}}")


def check_name(name: str) -> str:
    """A name is what queries call it.

    Raises:
        InputError: it is none.
    """
    if not _NAME.fullmatch(name):
        raise InputError(f"is a letter or _, then letters, digits and _, {NAME_MAX} at most", field="name")
    return name


def check_size(spec: Mapping[str, Any], earlier: Mapping[str, Any] | None = None) -> None:
    """An entry is a short text.

    Args:
        earlier: what it was before. One that was already too long may stay, but not grow.
    Raises:
        Problem: it is a long one.
    """
    size = _bytes_of(spec)
    if size <= SPEC_BYTES_MAX or (earlier is not None and size <= _bytes_of(earlier)):
        return
    detail = (
        f"the spec has {size:,} bytes, and the limit is {SPEC_BYTES_MAX:,}; name only those columns in its schema that "
        "are needed, or give them shorter names"
    )
    raise Problem("too_large.spec_too_large", detail, params={"limit": SPEC_BYTES_MAX},
                  errors=[Place(pointer="/spec", detail=detail)])  # fmt: skip


def _bytes_of(spec: Mapping[str, Any]) -> int:
    return len(json.dumps(spec, ensure_ascii=False, separators=(",", ":")).encode("utf-8", "surrogatepass"))


@contextmanager
def relative_to(place: str) -> Iterator[None]:
    """Errors name their field from the entry on, which stands at `place` of a join file."""
    try:
        yield
    except InputError as wrong:
        field = (wrong.field or "").removeprefix(place).lstrip(".")
        raise InputError(wrong.message, field=field or None) from None


@contextmanager
def pointing_into_spec() -> Iterator[None]:
    """What is wrong with an entry, or with the files it names, becomes a problem that points into `spec`."""
    try:
        yield
    except (InputError, RunError) as wrong:
        field = wrong.field if isinstance(wrong, InputError) else "path"
        detail = wrong.message if isinstance(wrong, InputError) else str(wrong)
        place = Place(pointer=f"/spec/{(field or '').replace('.', '/')}".rstrip("/"), detail=detail)
        raise Problem("invalid", f"{field}: {detail}" if field else detail, errors=[place]) from None
