"""State for people: what `streamjoin state` prints."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

from streamjoin.engine.state import DRAINS, UnitState
from streamjoin.errors import InputError, StateError
from streamjoin.index.segment import SegmentInfo
from streamjoin.state.generation import newest_head
from streamjoin.state.places import newest_states
from streamjoin.state.root import ObjectRoot, Root, root_of


def _root(directory: str | Path) -> Root:
    if "://" in str(directory):
        found = root_of(str(directory), Path, None, None)
        if isinstance(found, ObjectRoot) and newest_head(found) is None:
            raise InputError(f"{found.place} is no state of a job: there is nothing that says whose it is")
        return found
    directory = Path(directory)
    for candidate in (directory / "state", directory):
        if (candidate / "0").is_dir():
            return candidate
    raise InputError(f"{directory} is not a checkpoint of a job: it has no state directory")


def _states(root: Root) -> Iterator[tuple[int, UnitState]]:
    try:
        yield from newest_states(root, 0)
    except StateError as damage:
        raise StateError(f"{root if isinstance(root, Path) else root.place}: {damage}") from None


def list_units(directory: str | Path) -> str:
    """A line a unit: version, segments, rows, bytes, span of event time, and whether it drains.

    Raises:
        InputError: there is no state.
        StateError: a manifest is damaged.
    """
    lines = [f"{'unit':>5}{'version':>9}{'segments':>10}{'rows':>13}{'MiB':>9}  oldest and newest event time"]
    totals = [0, 0, 0]
    states = list(_states(_root(directory)))
    newest = max((state.version for _, state in states), default=0)
    for unit, state in states:
        if _has_left(state, newest):
            continue
        infos = list(state.tuples())
        rows, size = sum(info.rows for info in infos), sum(info.bytes for info in infos)
        totals = [totals[0] + len(infos), totals[1] + rows, totals[2] + size]
        times = [at for info in infos for at in (info.ts_min_us, info.ts_max_us)]
        span = f"{time_text(min(times))} .. {time_text(max(times))}" if times else "-"
        drains = ", drains" if state.values.get(DRAINS) else ""
        lines.append(f"{unit:>5}{state.version:>9}{len(infos):>10}{rows:>13,}{size / 2**20:>9.1f}  {span}{drains}")
    lines.append(f"{'all':>5}{'':>9}{totals[0]:>10}{totals[1]:>13,}{totals[2] / 2**20:>9.1f}")
    return "\n".join(lines)


def _has_left(state: UnitState, newest: int) -> bool:
    """Whether its unit drained and left; its last versions stay for a while."""
    return bool(state.values.get(DRAINS)) and state.version < newest and not any(state.tuples())


def show_units(directory: str | Path, unit: int | None) -> str:
    """The segments of every unit, or of one.

    Raises:
        InputError: there is no state, or no such unit.
    """
    states = dict(_states(_root(directory)))
    if unit is not None and unit not in states:
        raise InputError(f"there is no unit {unit}; units are {', '.join(map(str, states))}")
    return "\n".join(_unit_text(number, state) for number, state in states.items() if unit in (None, number))


def _unit_text(unit: int, state: UnitState) -> str:
    lines = [f"unit {unit}, version {state.version}"]
    names = "RS" if len(state.clocks) == 2 else [f"stream {number + 1}" for number in range(len(state.clocks))]
    for side, (name, clock) in enumerate(zip(names, state.clocks, strict=True)):
        mark = "none yet" if clock.mark_us is None else time_text(clock.mark_us)
        shed = f", {clock.shed:,} of them shed" if clock.shed else ""
        lines.append(f"  {name}: {clock.rows:,} tuples so far{shed}, mark {mark}")
        for table, found in state.tables.items():
            if found.input == side:
                # Of a ring tables are called by the number of the stream, and what is of it: "0", "0 new".
                what = table.removeprefix(str(side)).strip()
                kind = "" if what in ("", name) else f", {what}"
                lines += [_segment_text(info, clock.mark_us) + kind for info in found.segments]
    for table, found in state.tables.items():
        if found.input is None:
            rows, size = (sum(getattr(info, what) for info in found.segments) for what in ("rows", "bytes"))
            lines.append(f"  {table}: {rows:,} rows in files of {size / 2**20:.1f} MiB")
    counted = ", ".join(f"{name} {value:,}" for name, value in sorted(state.totals.items()) if value)
    lines.append(f"  since the start: {counted or 'nothing'}")
    return "\n".join(lines)


def _segment_text(info: SegmentInfo, mark_us: int | None) -> str:
    age = "" if mark_us is None else f", {max(mark_us - info.ts_max_us, 0) / 1e6:,.1f} s behind the mark"
    return (
        f"    {info.file:<16}{info.rows:>11,} rows{info.bytes / 2**20:>9.1f} MiB  "
        f"{time_text(info.ts_min_us)} .. {time_text(info.ts_max_us)}{age}"
    )


def time_text(us: int) -> str:
    """A time in UTC, with milliseconds."""
    try:
        return datetime.fromtimestamp(us / 1e6, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
    except (OverflowError, ValueError, OSError):
        return f"{us} us"
