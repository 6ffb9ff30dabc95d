"""Generated rows as a source, as the registry has it."""

from __future__ import annotations

from typing import Annotated, Any, Literal

import pyarrow as pa
from pydantic import Field

from streamjoin.errors import InputError
from streamjoin.generate import generator
from streamjoin.settings.setting import Settings, setting
from streamjoin.settings.values import Count, Rate, Seed
from streamjoin.sources.kind import Columns, Limits, Resolve, SourceKind


class GeneratorSettings(Settings):
    """Which rows, and how many."""

    kind: Annotated[str, setting("one of the generators, such as zipf.r")]
    rate: Annotated[
        Rate,
        setting(
            "rows per second of event time, and of the clock while the job is live; of nexmark kinds the events of "
            "all three streams, of tpch.lineitem orders, so that streams of one rate keep step",
            keeps_state=True,
        ),
    ] = 10_000.0
    rows: Annotated[Count | None, setting("where the stream ends", unset="some kinds never do")] = None
    seed: Annotated[Seed, setting("another seed gives other values")] = 1
    begin: Annotated[
        Literal["now"] | None, setting("now: event times begin when the job does first", unset="on 2026-01-01")
    ] = None
    options: Annotated[
        dict[str, float], setting("of the kind, such as {keys: 1000, skew: 0.5} for zipf", unset="its own")
    ] = Field(default_factory=dict)


def _look(settings: GeneratorSettings, columns: pa.Schema | None, resolve: Resolve) -> pa.Schema:
    try:
        made = generator(settings.kind)
    except InputError as wrong:
        raise InputError(wrong.message, field="kind") from None
    try:
        made.check_options(settings.options)
    except InputError as wrong:
        raise InputError(wrong.message, field="options") from None
    return made.schema


def _arguments(settings: GeneratorSettings, resolve: Resolve, limits: Limits) -> dict[str, Any]:
    return {
        "kind": settings.kind,
        "rate_per_s": settings.rate,
        "rows": settings.rows,
        "seed": settings.seed,
        "begins_now": settings.begin == "now",
        "rows_per_batch": limits.rows_per_batch,
        "options": settings.options,
    }


def _is_bounded(settings: GeneratorSettings, resolve: Resolve) -> bool:
    return settings.rows is not None or generator(settings.kind).length(settings.options) is not None


def _never_ends(settings: GeneratorSettings) -> str | None:
    if settings.rows is not None or generator(settings.kind).length(settings.options) is not None:
        return None
    return f"is missing; {settings.kind} never ends, so without it there is no end to run until"


GENERATOR = SourceKind(
    "generator",
    "generated rows",
    GeneratorSettings,
    Columns.OWN,
    _look,
    "streamjoin.sources.generated:open_generator",
    _arguments,
    is_bounded=_is_bounded,
    never_ends=_never_ends,
    no_relation="write the rows to files first, with streamjoin generate",
)
