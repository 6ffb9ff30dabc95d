"""The smallest case that still differs, and a script that shows it: rows first, then conditions, then constants."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import replace
from decimal import Decimal
from typing import Any

from .case import STREAMS, WAYS, Case, Difference, Window, bounds, difference
from .kinds import OTHERS, STORED_AS, decimals
from .terms import Column, Interval, Node, Number, Term, walk

TRIES_MAX = 600


def shrunk(case: Case, differs: Callable[[Case], Difference | None] = difference) -> Case:
    """The smallest case found that differs in the same way, after at most TRIES_MAX runs."""
    first = differs(case)
    assert first is not None, "there is no difference to make smaller"
    tries = TRIES_MAX

    def same(smaller: Case) -> bool:
        nonlocal tries
        tries -= 1
        found = differs(smaller)
        return found is not None and found.kind == first.kind

    progress = True
    while progress and tries > 0:
        progress = False
        for step in (_plainer, _fewer_rows, _fewer_conjuncts, _simpler_terms, _simpler_constants, _simpler_values):
            again = True
            while again and tries > 0:
                again = False
                for smaller in step(case):
                    if tries <= 0:
                        break
                    if same(smaller):
                        case, again, progress = smaller, True, True
                        break
    return _without_unread(case)


def _plainer(case: Case) -> Iterator[Case]:
    """Without what is beside the conditions."""
    if case.window != Window():
        yield replace(case, window=Window())
    if case.batches > 1:
        yield replace(case, batches=1)
    if case.index != "auto":
        yield replace(case, index="auto")
    if case.operator != "biclique":
        yield replace(case, operator="biclique")


def _fewer_rows(case: Case) -> Iterator[Case]:
    for stream in STREAMS:
        rows = list(case.rows[stream])
        length = (len(rows) + 1) // 2
        while length:
            for start in range(0, len(rows), length):
                yield replace(case, rows={**case.rows, stream: rows[:start] + rows[start + length :]})
            length = length // 2


def _fewer_conjuncts(case: Case) -> Iterator[Case]:
    for place in range(len(case.items)):
        yield replace(case, items=case.items[:place] + case.items[place + 1 :])
    for place in range(len(case.conjuncts)):
        if len(case.conjuncts) > 1:
            yield replace(case, conjuncts=case.conjuncts[:place] + case.conjuncts[place + 1 :])


def _with_parts(case: Case, simpler: Callable[[Term], Iterator[Term]]) -> Iterator[Case]:
    for place, item in enumerate(case.items):
        for other in _rewritten(item, simpler):
            yield replace(case, items=(*case.items[:place], other, *case.items[place + 1 :]))
    for place, conjunct in enumerate(case.conjuncts):
        for other in _rewritten(conjunct, simpler):
            yield replace(case, conjuncts=(*case.conjuncts[:place], other, *case.conjuncts[place + 1 :]))


def _rewritten(term: Term, simpler: Callable[[Term], Iterator[Term]]) -> Iterator[Term]:
    """The tree with one of its parts made simpler."""
    yield from simpler(term)
    if isinstance(term, Node):
        for place, operand in enumerate(term.operands):
            for other in _rewritten(operand, simpler):
                yield Node(term.operator, (*term.operands[:place], other, *term.operands[place + 1 :]))


def _simpler_terms(case: Case) -> Iterator[Case]:
    def simpler(term: Term) -> Iterator[Term]:
        if not isinstance(term, Node):
            return
        if term.operator == "BETWEEN":
            yield Node(">=", term.operands[:2])
            yield Node("<=", (term.operands[0], term.operands[2]))
        if term.operator == "IN":
            yield Node("=", term.operands[:2])
        for operand in term.operands:
            # An operand of the same kind can stand for the whole.
            if operand.type.family == term.type.family and not isinstance(operand, Number | Interval):
                yield operand

    yield from _with_parts(case, simpler)


def _simpler_constants(case: Case) -> Iterator[Case]:
    def simpler(term: Term) -> Iterator[Term]:
        if isinstance(term, Number):
            shorter = [term.text[:-1]] if term.text[-2:-1].isdigit() and "e" not in term.text else []
            for text in ("0", "1", "0.5", *shorter, term.text.lstrip("-")):
                if len(text) < len(term.text) or (text == "0" != term.text and len(term.text) == 1):
                    yield Number(text)
        if isinstance(term, Interval):
            for number in (0, 1):
                if number < abs(term.number) or term.number < 0:
                    yield Interval(number, term.unit)

    yield from _with_parts(case, simpler)


def _simpler_values(case: Case) -> Iterator[Case]:
    """Zeros, ones and not NULLs, once few rows are left."""
    for stream in STREAMS:
        for name, kind in case.columns[stream]:
            if kind in OTHERS or any(len(rows) > 3 for rows in case.rows.values()):
                continue
            digits = decimals(kind)
            for place, row in enumerate(case.rows[stream]):
                for plain in (0, 1):
                    value: Any = digits.value(plain) if digits else float(plain) if kind.startswith("float") else plain
                    if digits is not None and plain > digits.limit:
                        continue
                    if row[name] is not None and _magnitude(value) < _magnitude(row[name]):
                        rows = [*case.rows[stream]]
                        rows[place] = {**row, name: value}
                        yield replace(case, rows={**case.rows, stream: rows})


def _magnitude(value: Any) -> float:
    return math.inf if isinstance(value, float) and math.isnan(value) else abs(float(value))


def _without_unread(case: Case) -> Case:
    terms = (*case.conjuncts, *case.items)
    read = {(part.stream, part.name) for term in terms for part in walk(term) if isinstance(part, Column)}
    columns = {
        stream: tuple(column for column in case.columns[stream] if (stream, column[0]) in read) for stream in STREAMS
    }
    rows = {
        stream: [
            {name: row[name] for name in ("ts", *(name for name, _ in columns[stream]))} for row in case.rows[stream]
        ]
        for stream in STREAMS
    }
    return replace(case, columns=columns, rows=rows)


# --- as a script ----------------------------------------------------------------------------------------------------


def script(case: Case) -> str:
    """Python that writes the streams and the join file of a case; the comment says how to run it."""
    lines = [
        f"# seed {case.seed}; run this in an empty folder, then: streamjoin run join.yaml --until-end",
        "from decimal import Decimal",
        "from pathlib import Path",
        "import pyarrow as pa, pyarrow.parquet as pq",
        "nan, inf = float('nan'), float('inf')",
    ]
    for stream in STREAMS:
        first = 0
        for number, piece in enumerate(case.pieces(stream)):
            rows = case.rows[stream][first : first + piece.num_rows]
            columns = [f"    'id': pa.array({list(range(first, first + len(rows)))}, pa.int64()),"]
            columns += [
                f"    {name!r}: {_array(kind, [row[name] for row in rows])},"
                for name, kind in (("ts", "timestamp"), *case.columns[stream])
            ]
            lines += [
                f"Path('{stream}').mkdir(exist_ok=True)",
                "pq.write_table(pa.table({",
                *columns,
                f"}}), '{stream}/{number}.parquet')",
            ]
            first += len(rows)
    return "\n".join([*lines, "Path('join.yaml').write_text(" + repr(join_file(case)) + ")"])


def _array(kind: str, values: list[Any]) -> str:
    shown = "[" + ", ".join(_literal(value) for value in values) + "]"
    zone = {
        "timestamp": "pa.timestamp('us', 'UTC')",
        "timestamp_ns": "pa.timestamp('ns', 'UTC')",
        "date": "pa.date32()",
    }
    if kind in STORED_AS:
        return f"pa.array({shown}, pa.{STORED_AS[kind]}()).view({zone[kind]})"
    found = decimals(kind)
    return f"pa.array({shown}, " + (f"pa.decimal128({found.precision}, {found.scale}))" if found else f"'{kind}')")


def _literal(value: Any) -> str:
    # The context of Decimal rounds what is computed, and not what is read.
    return f"Decimal('{value}')" if isinstance(value, Decimal) else repr(value)


def join_file(case: Case, target: str = "") -> str:
    """The join file of a case, over the folders r and s."""
    try:
        plan = case.plan()
        way, index = case.way(plan), plan.index
        knobs = way.knobs
        if way.needs == "band":
            r, s = bounds(plan, case)
            knobs += f", r_groups: {len(r) + 1}, s_groups: {len(s) + 1}, r_bounds: {list(r)}, s_bounds: {list(s)}"
    except Exception:  # the plan may be what fails
        knobs, index = WAYS["biclique"].knobs, case.index
    return "\n".join(
        [
            "streams:",
            *(f"  {stream}: {{source: parquet, path: {stream}, time: ts}}" for stream in STREAMS),
            "query: >-",
            f"  {case.query}",
            f"operator: {{{knobs}, index: {index}}}",
            f"results: {{parquet: {target}results}}",
            f"run: {{checkpoint: {target}checkpoint, files_per_batch: 1}}",
            "",
        ]
    )


def report(case: Case, found: Difference) -> str:
    """For people: the smallest case, what differs, and how to see it."""
    small = shrunk(case)
    again = difference(small) or found
    return "\n".join(
        [
            f"seed {case.seed}: {again.text}",
            f"  {small.query}",
            f"  operator {small.operator}, index {small.index}, {small.batches} batch(es)",
            *(f"  {stream} {dict(small.columns[stream])}: {_shown(small, stream)}" for stream in STREAMS),
            f"  wanted {sorted(small.wanted(), key=str)}",
            script(small),
        ]
    )


def _shown(case: Case, stream: str) -> str:
    return "; ".join(str({name: str(value) for name, value in row.items()}) for row in case.rows[stream])
