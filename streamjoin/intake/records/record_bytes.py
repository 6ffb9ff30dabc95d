"""The bytes of an array of records, as compiled code wants them."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa

BYTES_MAX = 2**31 - 1

_OFFSET_TYPES: dict[pa.DataType, type[np.signedinteger]] = {
    pa.binary(): np.int32,
    pa.string(): np.int32,
    pa.large_binary(): np.int64,
    pa.large_string(): np.int64,
}


@dataclass(frozen=True, slots=True)
class RecordBytes:
    """Records inside one buffer; nothing is copied.

    Args:
        data: read-only uint8; record i is `data[starts[i]:ends[i]]`.
        starts, ends: int64 of shape (n,); equal for a null.
        valid: bool of shape (n,); False for a null.
    """

    data: npt.NDArray[np.uint8]
    starts: npt.NDArray[np.int64]
    ends: npt.NDArray[np.int64]
    valid: npt.NDArray[np.bool_]

    @classmethod
    def of(cls, values: pa.Array) -> RecordBytes:
        """A view of `values`; the errors are those of `Decoder.decode`."""
        offset_type = _OFFSET_TYPES.get(values.type)
        if offset_type is None:
            raise TypeError(f"records are a binary or string array, not {values.type}")
        count = len(values)
        if not count:
            return cls(_read_only(None), np.zeros(0, np.int64), np.zeros(0, np.int64), np.zeros(0, np.bool_))
        _, offsets_buffer, data_buffer = values.buffers()
        # Arrow lets a null have any extent; an empty one keeps the kernels from looking at it.
        valid = values.is_valid().to_numpy(zero_copy_only=False)
        offsets = np.frombuffer(offsets_buffer, offset_type)[values.offset : values.offset + count + 1]
        starts = offsets[:-1].astype(np.int64)
        ends = np.where(valid, offsets[1:], starts).astype(np.int64)
        if (size := int((ends - starts).sum())) > BYTES_MAX:
            raise ValueError(f"{size} bytes of records in one block; split it into blocks below 2 GiB")
        return cls(_read_only(data_buffer), starts, ends, valid)

    def __len__(self) -> int:
        return len(self.starts)

    def part(self, first: int, count: int) -> RecordBytes:
        """Records `first` to `first + count - 1`."""
        taken = slice(first, first + count)
        return RecordBytes(self.data, self.starts[taken], self.ends[taken], self.valid[taken])


def _read_only(buffer: pa.Buffer | None) -> npt.NDArray[np.uint8]:
    data = np.zeros(0, np.uint8) if buffer is None else np.frombuffer(buffer, np.uint8)
    # Numba compiles a kernel once for writable and once for read-only arrays; always the same saves the second.
    data.flags.writeable = False
    return data
