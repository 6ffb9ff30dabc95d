"""Which window a WITHIN means for the streams of a query: its reaches find the streams that they are for."""

from __future__ import annotations

from collections.abc import Sequence

from streamjoin.plan.window import R, Reaches, S, TimeWindow, Window
from streamjoin.query.scope import look_up, suggest
from streamjoin.query.source import Range, Source
from streamjoin.query.within import Asked


def window_of(asked: Asked, names: Sequence[str], source: Source, within: Range) -> Window | Reaches:
    """What WITHIN asks for, by the names that a query gives its streams.

    Raises:
        QueryError: a reach is for no stream of the query, a stream has two of them, or has none.
    """
    if not isinstance(asked, tuple):
        return asked
    spans_us: dict[str, int] = {}
    for reach in asked:
        name = look_up(reach.stream, {name: name for name in names})
        if name is None:
            raise source.wrong(
                f'the query reads no stream "{reach.stream}"; {suggest(reach.stream, {name: name for name in names})}',
                reach.place,
            )
        if name in spans_us:
            raise source.wrong(f"{name} has two reaches in this WITHIN; leave one out", reach.place)
        spans_us[name] = reach.span_us
    if missing := [name for name in names if name not in spans_us]:
        raise source.wrong(
            f"{' and '.join(missing)} {'has' if len(missing) == 1 else 'have'} no reach in this WITHIN; add "
            f"{', '.join(f'10 SECONDS FOR {name}' for name in missing)}",
            within,
        )
    spans = tuple(spans_us[name] for name in names)
    if len(names) == 2:
        return TimeWindow(spans[S], spans[R])
    return TimeWindow(spans[0], spans[0]) if len(set(spans)) == 1 else Reaches(tuple(names), spans)
