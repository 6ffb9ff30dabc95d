"""How late rows may come, how long others wait for them, and when snapshots close by that, for people."""

from __future__ import annotations

from collections.abc import Sequence

from streamjoin.plan.ending import EndsByRow
from streamjoin.plan.schema import StreamSchema
from streamjoin.plan.window import format_us
from streamjoin.settings.values import shown
from streamjoin.spec.prepare import Bound


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


def closing_words(bound: Bound) -> str | None:
    """When periods close; None where no query's snapshots close by punctuation."""
    snapshots = [query.file.results.snapshot for query in bound.queries]
    if not any(snapshot and snapshot.punctuation for snapshot in snapshots):
        return None
    given = {stream.name: bound.file.streams[stream.name].punctuate for stream in bound.plan.streams}
    spans = {punctuate.every for punctuate in given.values() if punctuate and punctuate.every is not None}
    if spans:
        every = ", ".join(map(format_us, sorted(spans)))
        return f"a snapshot closes for each {every} of event time, once the watermark of the results has passed its end"
    ends = [
        f"{stream.name} {_ending_words(stream)}" for stream in {one.name: one for one in bound.plan.streams}.values()
    ]
    all_of = "all have ended it, and " if len(ends) > 1 else ""
    return (
        f"a period ends in {', in '.join(ends)}; its snapshot closes once {all_of}the watermark of the results has "
        "passed the latest of these ends"
    )


def _ending_words(stream: StreamSchema) -> str:
    if isinstance(stream.ending, EndsByRow):
        value = stream.ending.value.as_py()
        text = shown(value) if isinstance(value, str | bool) else str(value)
        return f"at a row whose {stream.ending.column} is {text}"
    return "at the end of a file"
