"""State for people: what `streamjoin state` prints."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

from streamjoin.engine.state import UnitState
from streamjoin.errors import InputError, StateError
from streamjoin.index.segment import SegmentInfo
from streamjoin.state.store import StateStore, read_manifests


def _root(directory: Path) -> Path:
    for candidate in (directory / "state", directory):
        if (candidate / "0").is_dir():
            return candidate
    raise InputError(f"{directory} is not a checkpoint of a job: it has no state directory")


def _states(root: Path) -> Iterator[tuple[int, UnitState]]:
    try:
        yield from read_manifests(root)
    except StateError as damage:
        raise StateError(f"{root}: {damage}") from None


def list_units(directory: Path) -> str:
    """A line a unit: version, segments, rows, bytes, span of event time.

    Raises:
        InputError: there is no state.
        StateError: a manifest is damaged.
    """
    lines = [f"{'unit':>5}{'version':>9}{'segments':>10}{'rows':>13}{'MiB':>9}  oldest and newest event time"]
    totals = [0, 0, 0]
    for unit, state in _states(_root(directory)):
        infos = list(state.tuples())
        rows, size = sum(info.rows for info in infos), sum(info.bytes for info in infos)
        totals = [totals[0] + len(infos), totals[1] + rows, totals[2] + size]
        times = [at for info in infos for at in (info.ts_min_us, info.ts_max_us)]
        span = f"{time_text(min(times))} .. {time_text(max(times))}" if times else "-"
        lines.append(f"{unit:>5}{state.version:>9}{len(infos):>10}{rows:>13,}{size / 2**20:>9.1f}  {span}")
    lines.append(f"{'all':>5}{'':>9}{totals[0]:>10}{totals[1]:>13,}{totals[2] / 2**20:>9.1f}")
    return "\n".join(lines)


def show_units(directory: Path, unit: int | None) -> str:
    """The segments of every unit, or of one.

    Raises:
        InputError: there is no state, or no such unit.
    """
    root = _root(directory)
    store = StateStore(root)
    if unit is not None and unit not in store.units():
        raise InputError(f"there is no unit {unit}; units are {', '.join(map(str, store.units()))}")
    return "\n".join(_unit_text(number, state) for number, state in _states(root) if unit is None or number == unit)


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
