"""The texts of a job that are parsed, and how long they may be together."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

from backend.catalog.jobspec import JobSpec
from backend.problems import Place, Problem

TEXTS_BYTES_MAX: Final = 64 << 10
"""Of all texts of a job together that are parsed; one query alone may have as much."""
_PARSED: Final = ("query", "queries", "results")


def texts_of(spec: JobSpec) -> dict[str, bytes]:
    """The queries of a job and what it says of their results, by JSON pointer."""
    return {
        pointer: text.encode("utf-8", "surrogatepass")
        for section in _PARSED
        for pointer, text in _texts(getattr(spec, section), f"/{section}")
    }


def _texts(value: Any, pointer: str) -> Iterator[tuple[str, str]]:
    if isinstance(value, str):
        yield pointer, value
    elif isinstance(value, Mapping | list | tuple):
        for key, one in value.items() if isinstance(value, Mapping) else enumerate(value):
            yield from _texts(one, f"{pointer}/{key}")


def check_texts(spec: JobSpec, earlier: JobSpec | None = None) -> None:
    """Refuse a job whose texts together are too long, before any of them is parsed.

    Args:
        earlier: what the job is now; its texts may not grow where earlier versions took more.
    Raises:
        Problem: names the longest text.
    Cost: linear in the texts.
    """
    texts = texts_of(spec)
    size = sum(map(len, texts.values()))
    if size <= TEXTS_BYTES_MAX or (earlier is not None and size <= sum(map(len, texts_of(earlier).values()))):
        return
    longest = max(texts, key=lambda pointer: len(texts[pointer]))
    detail = (
        f"the texts of this job have {size:,} bytes together, and the limit is {TEXTS_BYTES_MAX:,}; shorten its "
        "queries and conditions, or make several jobs of it"
    )
    raise Problem("too_large.texts_too_large", detail, params={"limit": TEXTS_BYTES_MAX},
                  errors=[Place(pointer=longest, detail=detail)])  # fmt: skip
