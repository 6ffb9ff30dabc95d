"""TPC-H as two streams: order j of the file arrives j * 10**6 / rate us after the start, its lines up to 30 s later.

    tpch.orders    in order of time
    tpch.lineitem  in file order, that is in the order of their orders: disordered by less than 30 s

The lag of a line item is a hash of (seed, order key, line number); all other values are TPC-H's and ignore the seed.
`rate` is orders per second for both streams (about four line items come with each order).

Column names lose their o_ and l_, columns no join asks for (comments, clerks, ...) are left out, and decimals become
float64: the nearest one, so amounts with two digits compare equal to their literals.

Source: TPC-H specification, revision 3, sections 1.4 and 4.2.
"""

from __future__ import annotations

from collections.abc import Mapping
from decimal import Decimal
from functools import lru_cache, partial
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from streamjoin.generate.counter import Ints, integers
from streamjoin.generate.stream import TIME, TIMESTAMP, Generator, Option, Request, timestamps
from streamjoin.generate.tpch_files import table_file

LAG_US_MAX = 30_000_000
"""Line items come less than this long after their order."""

_LINES_PER_ORDER_MAX = 7
_SCALE = Option(0.01, 0.0001, 100, whole=False, description="TPC-H scale factor; 1 has 1,500,000 orders")

_ORDERS = pa.schema(
    {
        "orderkey": pa.int64(),
        "custkey": pa.int64(),
        "orderstatus": pa.string(),
        "totalprice": pa.float64(),
        "orderdate": pa.date32(),
        "orderpriority": pa.string(),
        "shippriority": pa.int32(),
    }
)
_LINEITEM = pa.schema(
    {
        "orderkey": pa.int64(),
        "linenumber": pa.int32(),
        "partkey": pa.int64(),
        "suppkey": pa.int64(),
        "quantity": pa.float64(),
        "extendedprice": pa.float64(),
        "discount": pa.float64(),
        "tax": pa.float64(),
        "returnflag": pa.string(),
        "shipdate": pa.date32(),
        "shipinstruct": pa.string(),
        "shipmode": pa.string(),
    }
)


def order_positions(orderkeys: Ints) -> Ints:
    """0-based positions of orders in their file: TPC-H uses the first 8 of every 32 keys, from 1 upwards."""
    return ((orderkeys >> 5) << 3 | (orderkeys & 7)) - 1


def _orders_columns(request: Request) -> list[pa.Array]:
    orders = _replay("orders", "o_", _ORDERS, request)
    return [*orders.columns, timestamps(request.times_us(request.numbers()))]


def _lineitem_columns(request: Request) -> list[pa.Array]:
    lines = _replay("lineitem", "l_", _LINEITEM, request)
    orderkeys = lines["orderkey"].to_numpy()
    identities = orderkeys * (_LINES_PER_ORDER_MAX + 1) + lines["linenumber"].to_numpy()
    lags_us = integers(request.seed, "tpch.lineitem.lag", identities, LAG_US_MAX)
    return [*lines.columns, timestamps(request.times_us(order_positions(orderkeys)) + lags_us)]


def _replay(table: str, prefix: str, schema: pa.Schema, request: Request) -> pa.RecordBatch:
    """The requested rows of the file, in file order."""
    if request.start == request.stop:
        return pa.RecordBatch.from_pylist([], schema=schema)
    file = table_file(table, request.options["scale"])
    begins = _row_group_begins(file)
    first, end = np.searchsorted(begins, request.start, side="right") - 1, np.searchsorted(begins, request.stop)
    pieces = []
    for group in range(int(first), int(end)):
        begin = int(begins[group])
        offset = max(request.start - begin, 0)
        pieces.append(_row_group(file, group, prefix, schema).slice(offset, request.stop - begin - offset))
    return pa.concat_batches(pieces)


@lru_cache(maxsize=32)
def _row_group_begins(file: Path) -> Ints:
    """Row numbers at which the row groups begin, and at the end the number of rows."""
    metadata = pq.read_metadata(file)
    sizes = [metadata.row_group(group).num_rows for group in range(metadata.num_row_groups)]
    return np.concatenate([[0], np.cumsum(sizes, dtype=np.int64)])


# One reader of each stream stays inside one row group (about 10 MB) for many batches.
@lru_cache(maxsize=4)
def _row_group(file: Path, group: int, prefix: str, schema: pa.Schema) -> pa.RecordBatch:
    with pq.ParquetFile(file) as parquet:
        stored = parquet.read_row_group(group, columns=[prefix + name for name in schema.names])
    columns = [_plain(stored[prefix + field.name], field.type) for field in schema]
    return pa.Table.from_arrays(columns, schema=schema).combine_chunks().to_batches()[0]


def _plain(column: pa.ChunkedArray, kind: pa.DataType) -> pa.ChunkedArray:
    if pa.types.is_decimal(column.type):
        # One division of whole numbers gives the nearest float64; Arrow's own cast is one bit off for some amounts.
        ten_power = 10**column.type.scale
        digits = pc.multiply(column, pa.scalar(Decimal(ten_power))).cast(pa.int64())
        return pc.divide(digits.cast(pa.float64()), float(ten_power))
    return column.cast(kind)


def _count(table: str, options: Mapping[str, float]) -> int:
    return int(_row_group_begins(table_file(table, options["scale"]))[-1])


ORDERS = Generator(
    kind="tpch.orders",
    description="TPC-H orders in file order, rate orders per second",
    schema=_ORDERS.append(pa.field(TIME, TIMESTAMP)),
    columns=_orders_columns,
    known_options={"scale": _SCALE},
    count=partial(_count, "orders"),
)
LINEITEM = Generator(
    kind="tpch.lineitem",
    description="TPC-H line items in file order, each up to 30 s after its order; rate is orders per second",
    schema=_LINEITEM.append(pa.field(TIME, TIMESTAMP)),
    columns=_lineitem_columns,
    known_options={"scale": _SCALE},
    count=partial(_count, "lineitem"),
    disorder_us=LAG_US_MAX,
    share=4.0,
)
