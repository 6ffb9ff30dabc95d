"""JSON records read by msgspec, to the same rows and bad records as ours as far as it can.

msgspec reads each record into a Struct of the wanted fields. What it lets through and we do not is looked for first:
    a field that stands twice    it keeps the last one. Names are counted in the whole block; only where that does not
                                 settle it, in each record, and what is still suspect Python's `json` reads once more.
    invalid UTF-8                it checks wanted text alone. PyArrow checks the block.
    times, decimals              it rounds nanoseconds, knows one form of times, and takes `1_0` for a decimal. Our
                                 kernels read their text; CSV needs them anyway.

Left as it is: a record is bad for a lone surrogate in a field that nobody wants, for a wanted name that stands twice in
an object that nobody wants, and for nesting 1,000 deep; a field that is called `a.b` itself is not found.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated, Any

import msgspec
import numpy as np
import numpy.typing as npt
import pyarrow as pa
from msgspec import UNSET, UnsetType

from streamjoin.intake.records.assemble import Column, assemble
from streamjoin.intake.records.cells import ESCAPED, FALSE, NESTED, NULL, NUMBER, STRING, TRUE, FieldCells
from streamjoin.intake.records.columns import column_of, integer_limits
from streamjoin.intake.records.contract import Decoded
from streamjoin.intake.records.record_bytes import RecordBytes
from streamjoin.intake.records.utf8 import mark_invalid_utf8

_KINDS = np.full(256, NUMBER, np.uint8)
for _first, _kind in ((b'"', STRING), (b"n", NULL), (b"t", TRUE), (b"f", FALSE), (b"{", NESTED), (b"[", NESTED)):
    _KINDS[_first[0]] = _kind

Objects = list[Any]
Tree = dict[str, Any]
"""Field name -> the column it is, or the fields of the object it is."""


@dataclass(slots=True)
class _Found:
    """What the records of a block hold.

    Args:
        columns: by column name.
        having: how many objects have a field of that name.
    """

    columns: dict[str, Column]
    having: Counter[str]


class MsgspecDecoder:
    """See `Decoder`; columns of the types that the inputs have."""

    def __init__(self, schema: pa.Schema) -> None:
        self._schema = schema
        self._tree = _tree_of([(field.name.split("."), field) for field in schema])
        self._decoder = msgspec.json.Decoder(_struct_of(self._tree))
        self._empty = self._decoder.type()
        self._names = sorted({name for field in schema for name in field.name.split(".")})

    def objects(self, texts: Sequence[bytes | None]) -> tuple[Objects, dict[int, str]]:
        """A Struct for each record, an empty one where it is bad, and why it is."""
        rows: Objects = []
        reasons = {}
        decode, append = self._decoder.decode, rows.append
        for place, text in enumerate(texts):
            try:
                append(decode(text))  # type: ignore[arg-type]
            except (ValueError, RecursionError, TypeError) as error:
                append(self._empty)
                if text is not None:
                    reasons[place] = str(error)
        return rows, reasons

    def decode(self, values: pa.Array) -> Decoded:
        """See `Decoder.decode`."""
        records = RecordBytes.of(values)
        texts = values.to_pylist()
        rows, reasons = self.objects(texts)
        found = _Found({}, Counter())
        _collect(rows, self._tree, found)
        suspects = self._suspects(records, texts, found, set(reasons))
        for place in map(int, np.flatnonzero(_invalid_utf8(values, records))):
            reasons.setdefault(place, "not valid UTF-8")
        for place in suspects:
            if place not in reasons and (twice := self._twice(texts[place])):
                reasons[place] = twice
        return assemble(self._schema, records, [found.columns[name] for name in self._schema.names], reasons)

    def _suspects(self, records: RecordBytes, texts: Sequence[bytes | None], found: _Found, bad: set[int]) -> list[int]:
        """Records in which a wanted name may stand twice, or stand with escapes."""
        block = records.data.tobytes()
        suspects: set[int] = set()
        if is_escaped := b"\\u" in block:
            suspects.update(place for place, text in enumerate(texts) if text is not None and b"\\u" in text)
        for name in self._names:
            quoted = b'"%s"' % name.encode()
            standing = block.count(quoted) - sum((texts[place] or b"").count(quoted) for place in bad)
            # As often as there are records that have it means once in each of them.
            if is_escaped or standing != found.having[name]:
                suspects.update(
                    place for place, text in enumerate(texts) if text is not None and text.count(quoted) > 1
                )
        return sorted(suspects)

    def _twice(self, text: bytes | None) -> str:
        found = ""

        def once(pairs: list[tuple[str, object]]) -> dict[str, object]:
            nonlocal found
            answer = dict(pairs)
            if len(answer) != len(pairs):
                names = [name for name, _ in pairs]
                found = next((f'field "{name}" is given twice' for name in self._names if names.count(name) > 1), found)
            return answer

        json.loads(text or b"{}", object_pairs_hook=once)
        return found


def _tree_of(fields: Sequence[tuple[list[str], pa.Field]]) -> Tree:
    below: dict[str, list[tuple[list[str], pa.Field]]] = {}
    for names, field in fields:
        below.setdefault(names[0], []).append((names[1:], field))
    return {name: _tree_of(each) if each[0][0] else each[0][1] for name, each in below.items()}


def _struct_of(tree: Tree) -> Any:
    fields: list[Any] = []
    for name, below in tree.items():
        if isinstance(below, dict):
            fields.append((name, _struct_of(below) | None | UnsetType, UNSET))
        elif pa.types.is_decimal(below.type):
            fields.append((name, msgspec.Raw, UNSET))
        else:
            fields.append((name, _python_type(below.type) | None | UnsetType, UNSET))
    return msgspec.defstruct("Row", fields, gc=False)


def _collect(objects: Objects, tree: Tree, found: _Found) -> None:
    for name, below in tree.items():
        values = [getattr(each, name, UNSET) for each in objects]
        if isinstance(below, dict):
            found.having[name] += len(values) - sum([value is UNSET for value in values])
            _collect(values, below, found)
            continue
        present = len(values)
        try:
            column = _column(values, below.type)
        except (TypeError, pa.ArrowInvalid, pa.ArrowTypeError):  # Some records lack it.
            plain = [None if value is UNSET else value for value in values]
            present -= sum([value is UNSET for value in values])
            column = _column(plain, below.type)
        found.columns[below.name] = column
        found.having[name] += present


def _column(values: Objects, data_type: pa.DataType) -> Column:
    if pa.types.is_decimal(data_type):
        return column_of(_raw_cells(values), data_type)
    if pa.types.is_temporal(data_type):
        return column_of(_text_cells(values), data_type)
    return Column(pa.array(values, data_type), np.zeros(len(values), np.uint8), lambda row: "")


def _python_type(data_type: pa.DataType) -> Any:
    if pa.types.is_integer(data_type):
        low, high = integer_limits(data_type)
        return Annotated[int, msgspec.Meta(ge=low, le=high)]
    if pa.types.is_boolean(data_type):
        return bool
    return float if pa.types.is_float64(data_type) else str


def _invalid_utf8(values: pa.Array, records: RecordBytes) -> npt.NDArray[np.uint8]:
    fault = np.zeros(len(records), np.uint8)
    try:
        values.cast(pa.string())
    except pa.ArrowInvalid:
        mark_invalid_utf8(records.data, records.starts, records.ends - records.starts, fault)
    return fault


def _text_cells(found: Objects) -> FieldCells:
    texts = RecordBytes.of(pa.array(found, pa.string()))
    kind = np.where(texts.valid, STRING, NULL).astype(np.uint8)
    return FieldCells(texts.data, kind, texts.starts, texts.ends - texts.starts)


def _raw_cells(found: Objects) -> FieldCells:
    texts = RecordBytes.of(pa.array([bytes(each) if each is not None else None for each in found], pa.binary()))
    kind = np.where(texts.valid, _KINDS[texts.data[np.minimum(texts.starts, texts.data.size - 1)]], NULL)
    kind = kind.astype(np.uint8)
    if (texts.data == ord("\\")).any():
        for row in np.flatnonzero(kind == STRING):
            if (texts.data[texts.starts[row] : texts.ends[row]] == ord("\\")).any():
                kind[row] = ESCAPED
    quotes = np.isin(kind, (STRING, ESCAPED)).astype(np.int64)
    return FieldCells(texts.data, kind, texts.starts + quotes, texts.ends - texts.starts - 2 * quotes)
