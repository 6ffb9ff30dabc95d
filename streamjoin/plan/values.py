"""What an expression is evaluated on and to: Arrow arrays and scalars."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TypeAlias

import pyarrow as pa

Value: TypeAlias = "pa.Array | pa.Scalar"
Columns: TypeAlias = Mapping[tuple[str, str], pa.Array]
"""Arrays of the same length by (stream, column)."""
