"""State for people: what `streamjoin state` prints."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from streamjoin.engine.state import DRAINS, NUMBERS, UnitState
from streamjoin.errors import InputError, StateError
from streamjoin.flow.punctuation import StreamClock
from streamjoin.index.segment import SegmentInfo
from streamjoin.state.generation import newest_head
from streamjoin.state.places import newest_states, stages_at
from streamjoin.state.root import ObjectRoot, Root, root_of

_STORED = ("received_store", "received_both")


@dataclass(frozen=True, slots=True)
class _Shown:
    """A unit as people see it.

    Args:
        stage: counted from 1, as in labels.
        number: within the stage.
        label: what reports call it; of one stage `0`, of several `2.R0`.
        instead: what its stage has in place of tuples, if it keeps none.
    """

    stage: int
    number: int
    label: str
    state: UnitState
    instead: str = ""

    @property
    def is_of_several(self) -> bool:
        """Whether the job has several stages."""
        return self.label != str(self.number)

    def is_called(self, name: str) -> bool:
        """Whether people may mean it by that: its label, or what it is called within its stage."""
        return name in (self.label, str(self.number), self.state.label)


def _root(directory: str | Path) -> Root:
    if "://" in str(directory):
        found = root_of(str(directory), Path, None, None)
        if not isinstance(found, ObjectRoot):
            return _root(found)
        if newest_head(found) is None:
            raise InputError(f"{found.place} is no state of a job: there is nothing that says whose it is")
        return found
    directory = Path(directory)
    for candidate in (directory / "state", directory):
        if (candidate / "0").is_dir():
            # A stage has folders of units, and those have files: whoever names a stage means no state of a whole job.
            if directory.name.isdecimal() and any(path.is_file() for path in (candidate / "0").iterdir()):
                raise InputError(
                    f"{directory} is one stage of a state; name the checkpoint or {directory.parent}, with --stage "
                    f"{int(directory.name) + 1}"
                )
            return candidate
    raise InputError(f"{directory} is not a checkpoint of a job: it has no state directory")


def _shown(directory: str | Path, stage: int | None) -> list[_Shown]:
    """The units of every stage, or of one, without those that left."""
    root = _root(directory)
    stages = stages_at(root)
    if stage is not None and stage - 1 not in stages:
        raise InputError(f"there is no stage {stage}; stages are {', '.join(str(one + 1) for one in stages)}")
    found: list[_Shown] = []
    try:
        for number in stages:
            if stage in (None, number + 1):
                states = dict(_there(dict(newest_states(root, number))))
                found += _of_stage(number + 1, states, is_alone=len(stages) == 1)
    except StateError as damage:
        raise StateError(f"{root if isinstance(root, Path) else root.place}: {damage}") from None
    return found


def _of_stage(stage: int, states: dict[int, UnitState], *, is_alone: bool) -> Iterator[_Shown]:
    instead = "" if is_alone else _instead(list(states.values()))
    for unit, state in states.items():
        label = str(unit) if is_alone else f"{stage}.{state.label or f'unit {unit}'}"
        yield _Shown(stage, unit, label, state, instead)


def _there(states: dict[int, UnitState]) -> Iterator[tuple[int, UnitState]]:
    """Those that have not drained and left; their last versions stay for a while."""
    newest = max((state.version for state in states.values()), default=0)
    told = (state.values.get(NUMBERS) for state in states.values() if state.version == newest)
    now = next((numbers for numbers in told if numbers is not None), None)
    for unit, state in states.items():
        has_left = state.values.get(DRAINS) or (now is not None and unit not in now)
        if not has_left or state.version == newest or any(state.tuples()):
            yield unit, state


def list_units(directory: str | Path, stage: int | None = None) -> str:
    """A line a unit: version, segments, rows, bytes, span of event time, and whether it drains.

    Units of several stages have their labels, stage by stage.

    Args:
        stage: only this one, counted from 1.
    Raises:
        InputError: there is no state, or no such stage.
        StateError: a manifest is damaged.
    """
    shown = _shown(directory, stage)
    width = max(5, *(len(one.label) for one in shown)) if shown else 5
    lines = [f"{'unit':>{width}}{'version':>9}{'segments':>10}{'rows':>13}{'MiB':>9}  oldest and newest event time"]
    totals = [0, 0, 0]
    for one in shown:
        infos = list(one.state.tuples())
        rows, size = sum(info.rows for info in infos), sum(info.bytes for info in infos)
        totals = [totals[0] + len(infos), totals[1] + rows, totals[2] + size]
        drains = ", drains" if one.state.values.get(DRAINS) else ""
        lines.append(
            f"{one.label:>{width}}{one.state.version:>9}{len(infos):>10}{rows:>13,}{size / 2**20:>9.1f}  "
            f"{_span(one, infos)}{drains}"
        )
    lines.append(f"{'all':>{width}}{'':>9}{totals[0]:>10}{totals[1]:>13,}{totals[2] / 2**20:>9.1f}")
    return "\n".join(lines)


def _span(one: _Shown, infos: Sequence[SegmentInfo]) -> str:
    times = [at for info in infos for at in (info.ts_min_us, info.ts_max_us)]
    return f"{time_text(min(times))} .. {time_text(max(times))}" if times else f"-{one.instead and f' ({one.instead})'}"


def _instead(states: Sequence[UnitState]) -> str:
    """What a stage has whose units store no tuples: relations are beside the state, and later rounds only look."""
    if any(state.tables or any(map(state.totals.get, _STORED)) for state in states):
        return ""
    joined = next((state.values for state in states if "relation" in state.values), None)
    return f"joins version {joined['version']} of {joined['relation']}" if joined else "keeps nothing of its own"


def show_units(directory: str | Path, unit: str | int | None = None, stage: int | None = None) -> str:
    """The segments of every unit, or of one.

    Args:
        unit: its label, or its number within its stage.
        stage: only this one, counted from 1.
    Raises:
        InputError: there is no state, or no such stage or unit.
        StateError: a manifest is damaged.
    """
    shown = _shown(directory, stage)
    if unit is None:
        return "\n".join(map(_unit_text, shown))
    called = [one for one in shown if one.is_called(str(unit))]
    if not called:
        raise InputError(f"there is no unit {unit}; units are {', '.join(one.label for one in shown)}")
    if len(called) > 1:
        raise InputError(
            f"several stages have a unit {unit}; name one of {', '.join(one.label for one in called)}, or its --stage"
        )
    return _unit_text(called[0])


def _unit_text(one: _Shown) -> str:
    state = one.state
    lines = [f"unit {one.label}, version {state.version}"]
    names = "RS" if len(state.clocks) == 2 else [f"stream {number + 1}" for number in range(len(state.clocks))]
    if one.instead:
        lines[0] += f", {one.instead}"
    for side, (name, clock) in enumerate(zip(names, state.clocks, strict=True)):
        if one.is_of_several and clock == StreamClock() and not any(state.tuples(side)):
            continue  # a stage that reads one stream has a clock of another
        mark = "none yet" if clock.mark_us is None else time_text(clock.mark_us)
        shed = f", {clock.shed:,} of them shed" if clock.shed else ""
        lines.append(f"  {name}: {clock.rows:,} tuples so far{shed}, watermark {mark}")
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
    age = "" if mark_us is None else f", {max(mark_us - info.ts_max_us, 0) / 1e6:,.1f} s behind the watermark"
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
