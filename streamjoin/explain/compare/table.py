"""A comparison as text: a table of what was measured, and one of measured figures beside predicted ones."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from streamjoin.explain.compare.distribution import distribution_text

Row = Mapping[str, Any]

NESTED_LOOP = "predicted comparisons are those of a nested loop; an index needs a small part of them"
ONE_TUPLE = (
    "PL and VL are SplitJoin's model for one tuple that waits for no other, from this run's cost of a step; "
    "a batch adds its length"
)


@dataclass(frozen=True, slots=True)
class Column:
    """A measure in the first table: what stands over it, and how a report's figure is written."""

    title: str
    cell: Callable[[Row], str]


@dataclass(frozen=True, slots=True)
class Pair:
    """A measure that is both measured and predicted: its title, its names in a report and in `predicted`."""

    title: str
    measured: str
    predicted: str
    text: Callable[[float], str]


def comparison_text(rows: Sequence[Row]) -> str:
    """All operators of a comparison, one a line; an operator without figures shows the reason in its place."""
    blocks = [_table(rows, [column.title for column in COLUMNS], lambda row: [column.cell(row) for column in COLUMNS])]
    foretold = [row for row in rows if row.get("predicted")]
    if foretold:
        titles = [cell for pair in PAIRS for cell in (pair.title, "predicted", "ratio")]
        models = any(row["predicted"].get("latency_us") for row in foretold)
        with_figures = [row for row in rows if not row.get("error")]
        blocks.append(
            _table(with_figures, titles + ["PL", "VL"] * models, lambda row: _pairs(row) + _model(row) * models)
        )
        blocks.append("\n".join([NESTED_LOOP, *[ONE_TUPLE] * models, *_blocks(foretold)]))
    counts = {row["results"] for row in rows if not row.get("error") and not row.get("stopped")}
    if words := distribution_text({row["operator"] for row in rows}):
        blocks.append(words)
    if len(counts) > 1:
        blocks.append("the numbers of results differ: late or shed tuples, or a mistake")
    return "\n\n".join(blocks)


def _table(rows: Sequence[Row], titles: Sequence[str], cells: Callable[[Row], Sequence[str]]) -> str:
    lines: list[tuple[str, Sequence[str] | str]] = [("operator", titles)]
    for row in rows:
        lines.append((row["operator"], reason(row) if row.get("error") else cells(row)))
    filled = [cells for _, cells in lines if not isinstance(cells, str)]
    widths = [max(map(len, column)) for column in zip(*filled, strict=True)]
    first = max(len(name) for name, _ in lines)
    out = []
    for name, found in lines:
        if not isinstance(found, str):
            found = "  ".join(f"{cell:>{width}}" for cell, width in zip(found, widths, strict=True))
        out.append(f"{name:<{first}}  {found}")
    return "\n".join(out)


def reason(row: Row) -> str:
    """Why an operator has no figures."""
    return f"{'failed' if row.get('failed') else 'cannot'}: {row['error']}"


def _pairs(row: Row) -> list[str]:
    foretold = row.get("predicted") or {}
    found: list[str] = []
    for pair in PAIRS:
        measured, told = row.get(pair.measured), foretold.get(pair.predicted)
        found += [_or_dash(measured, pair.text), _or_dash(told, pair.text), _or_dash(ratio(measured, told), _ratio)]
    return found


def ratio(measured: float | None, predicted: float | None) -> float | None:
    """Measured / predicted, where both are there."""
    return measured / predicted if measured is not None and predicted else None


def _model(row: Row) -> list[str]:
    latency = (row.get("predicted") or {}).get("latency_us")
    return [_or_dash(latency and latency[name], _us) for name in ("processing", "visiting")]


def _blocks(rows: Sequence[Row]) -> list[str]:
    return [
        f"{row['operator']}: blocks of {' and '.join(f'{size:,} {name}' for name, size in blocks.items())}"
        for row in rows
        if (blocks := row["predicted"].get("block_tuples"))
    ]


def _or_dash(value: Any, text: Callable[[Any], str]) -> str:
    return "-" if value is None else text(value)


def _of(name: str, text: Callable[[Any], str], part: str | None = None) -> Callable[[Row], str]:
    def cell(row: Row) -> str:
        value = row.get(name)
        return _or_dash(value if part is None or value is None else value[part], text)

    return cell


def _results(row: Row) -> str:
    return f"{row['results']:,}{' so far' if row.get('stopped') else ''}"


def _whole(value: float) -> str:
    return f"{value:,.0f}"


def _ms(value: float) -> str:
    return f"{value:,.0f} ms"


def _us(value: float) -> str:
    return f"{value:,.1f} us"


def _share(value: float) -> str:
    return f"{value:.3g}" if abs(value) < 0.1 else f"{value:,.2f}"


def _ratio(value: float) -> str:
    return f"{value:.2f}" if value >= 0.01 else f"{value:.0e}"


def _mebibytes(size: float) -> str:
    return f"{size / 2**20:,.1f} MiB"


COLUMNS = (
    Column("tuples/s", _of("tuples_per_second", _whole)),
    Column("results", _results),
    Column("latency p50", _of("latency_ms", _ms, "p50")),
    Column("p95", _of("latency_ms", _ms, "p95")),
    Column("order p50", _of("order_delay_ms", _ms, "p50")),
    Column("p95", _of("order_delay_ms", _ms, "p95")),
    Column("compared a tuple", _of("comparisons_per_tuple", _share)),
    Column("searched a tuple", _of("search_steps_per_tuple", _share)),
    Column("rho", _of("rho", _share)),
    Column("live tuples", _of("state_rows_max", _whole)),
)
PAIRS = (
    Pair("replication", "replication", "replication", "{:.2f}".format),
    Pair("state", "state_bytes_max", "memory_bytes", _mebibytes),
    Pair("comparisons", "comparisons", "comparisons", _whole),
)
