"""How late rows may come, and how long others wait for them, for people."""

from __future__ import annotations

from collections.abc import Sequence

from streamjoin.plan.schema import StreamSchema
from streamjoin.plan.window import format_us


def span_words(us: int) -> str:
    """A span, or that there is none."""
    return format_us(us) if us else "none"


def delay_lines(streams: Sequence[StreamSchema]) -> list[tuple[str, str]]:
    """The allowed delays, and the silences after which streams are idle."""
    lines = [("delay", ", ".join(f"{stream.name} {span_words(stream.delay_us)}" for stream in streams))]
    if idle := {stream.name: stream.idle_us for stream in streams if stream.idle_us is not None}:
        silences = ", ".join(f"{name} after {format_us(span_us)}" for name, span_us in idle.items())
        lines.append(("idle", f"{silences} of silence; it holds back the others no longer"))
    return lines
