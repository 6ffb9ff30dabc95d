"""The compiled inner loops: sorting by radix, hashing of strings, and probing one segment.

All arrays are contiguous int64 unless said otherwise. Kernels release the GIL and are cached on disk, so a process
pays for compilation once a machine.
"""

from __future__ import annotations

import numpy as np

from streamjoin.kernel import kernel

_BITS = 8  # 256 counters stay in the first-level cache; 11 bits were slower here.


@kernel
def is_sorted(values: np.ndarray) -> bool:
    """Whether `values` never fall. Cost: one pass, ended by the first fall."""
    for i in range(1, values.size):  # noqa: SIM110 (Numba compiles no generators)
        if values[i] < values[i - 1]:
            return False
    return True


@kernel
def radix_order(values: np.ndarray, order: np.ndarray) -> np.ndarray:
    """`order` rearranged so that values[order] rises; rows of equal value keep their order.

    Args:
        order: row numbers, int64 of shape (n,); the caller's order before this key.
    Returns:
        int64 of shape (n,).
    Cost: one pass for each byte in which the values differ.
    """
    n = order.size
    if n == 0:
        return order
    low = values[order[0]]
    high = low
    for i in range(n):
        v = values[order[i]]
        low = min(low, v)
        high = max(high, v)
    span = np.uint64(high) - np.uint64(low)
    keys = np.empty(n, np.uint64)
    rows = np.empty(n, np.int64)
    for i in range(n):
        keys[i] = np.uint64(values[order[i]]) - np.uint64(low)
        rows[i] = order[i]
    keys_next = np.empty(n, np.uint64)
    rows_next = np.empty(n, np.int64)
    mask = np.uint64((1 << _BITS) - 1)
    shift = np.uint64(0)
    starts = np.empty((1 << _BITS) + 1, np.int64)
    while shift < np.uint64(64) and (span >> shift) > np.uint64(0):
        starts[:] = 0
        for i in range(n):
            starts[np.int64((keys[i] >> shift) & mask) + 1] += 1
        if starts[np.int64((keys[0] >> shift) & mask) + 1] != n:  # a byte all keys share moves nothing
            for counted in range(1 << _BITS):
                starts[counted + 1] += starts[counted]
            for i in range(n):
                digit = np.int64((keys[i] >> shift) & mask)
                place = starts[digit]
                starts[digit] = place + 1
                keys_next[place] = keys[i]
                rows_next[place] = rows[i]
            keys, keys_next = keys_next, keys
            rows, rows_next = rows_next, rows
        shift += np.uint64(_BITS)
    return rows


@kernel
def mix(values: np.ndarray) -> np.ndarray:
    """A 64-bit mixing of every value, one to one. Source: the finalizer of SplitMix64 (Steele et al., OOPSLA 2014)."""
    out = np.empty(values.size, np.int64)
    for i in range(values.size):
        x = np.uint64(values[i])
        x = (x ^ (x >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        x = (x ^ (x >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
        out[i] = np.int64(x ^ (x >> np.uint64(31)))
    return out


@kernel
def hash_bytes(offsets: np.ndarray, data: np.ndarray) -> np.ndarray:
    """A 64-bit hash of every byte string data[offsets[i]:offsets[i + 1]].

    Args:
        offsets: int32 or int64 of shape (n + 1,).
        data: uint8.
    Returns:
        int64 of shape (n,). Equal strings hash alike; different ones rarely do, so callers check again.
    Source: FNV-1a over bytes, mixed at the end because its high bits are weak.
    """
    n = offsets.size - 1
    out = np.empty(n, np.int64)
    for i in range(n):
        h = np.uint64(0xCBF29CE484222325)
        for j in range(offsets[i], offsets[i + 1]):
            h = (h ^ np.uint64(data[j])) * np.uint64(0x100000001B3)
        h = (h ^ (h >> np.uint64(32))) * np.uint64(0xBF58476D1CE4E5B9)
        out[i] = np.int64(h ^ (h >> np.uint64(29)))
    return out


@kernel
def limb_keys(words: np.ndarray, shift: np.ndarray) -> np.ndarray:
    """The leading 54 bits of word + shift and their place, as int64 that never fall where the sums rise.

    Args:
        words: integers in two's complement, uint64 of shape (n, 2 or 4), least significant first, below 2**253.
        shift: one such integer, uint64 of shape (4,), at most 2**254.
    Returns:
        int64 of shape (n,); sums below 2**54 are their own keys.
    """
    n, width = words.shape
    out = np.empty(n, np.int64)
    total = np.empty(4, np.uint64)
    for i in range(n):
        sign = np.uint64(0) - (words[i, width - 1] >> np.uint64(63))
        carry = np.uint64(0)
        for place in range(4):
            word = words[i, place] if place < width else sign
            part = word + shift[place]
            first = np.uint64(part < word)
            part2 = part + carry
            carry = first | np.uint64(part2 < part)
            total[place] = part2
        negative = (total[3] >> np.uint64(63)) == np.uint64(1)
        if negative:
            carry = np.uint64(1)
            for place in range(4):
                total[place] = ~total[place] + carry
                carry = np.uint64(carry == np.uint64(1) and total[place] == np.uint64(0))
        top = 3
        while top > 0 and total[top] == np.uint64(0):
            top -= 1
        bits = np.int64(0)
        rest = total[top]
        while rest:
            bits += 1
            rest >>= np.uint64(1)
        bits += 64 * top
        if bits <= 54:
            key = np.int64(total[0])
        else:
            drop = bits - 54
            limb = drop >> 6
            inside = np.uint64(drop & 63)
            value = total[limb] >> inside
            if inside and limb < 3:
                value |= total[limb + 1] << (np.uint64(64) - inside)
            value &= np.uint64((1 << 54) - 1)
            key = (drop << 53) + np.int64(value)
        out[i] = -key if negative else key
    return out


@kernel
def lower_bound(values: np.ndarray, start: int, stop: int, value: int) -> tuple[int, int]:
    """The first place in values[start:stop], which rise, that is not below `value`; `stop` where all are.

    Gallops from `start`, so that probes in rising order cost the logarithm of the step, not of the segment.

    Returns:
        (the place, values looked at).
    """
    if start >= stop:
        return start, 0
    looked = 1
    if values[start] >= value:
        return start, looked
    step = 1
    low = start
    while low + step < stop:
        looked += 1
        if values[low + step] >= value:
            break
        low += step
        step <<= 1
    high = min(low + step, stop)
    low += 1
    while low < high:
        looked += 1
        middle = (low + high) >> 1
        if values[middle] < value:
            low = middle + 1
        else:
            high = middle
    return low, looked


@kernel
def probe_segment(
    cells: np.ndarray,
    keys: np.ndarray,
    coordinates: np.ndarray,
    span: np.ndarray,
    probe_rows: np.ndarray,
    probe_cells: np.ndarray,
    probe_lows: np.ndarray,
    probe_highs: np.ndarray,
    probe_coordinates: np.ndarray,
    window: np.ndarray,
    cursor: np.ndarray,
    out_probe: np.ndarray,
    out_stored: np.ndarray,
) -> tuple[int, int, int]:
    """Match probes, sorted by (cell, low), with one segment's rows, sorted by (cell, key).

    A stored row matches when its cell is the probe's, its key is in [low, high], and its window coordinate minus the
    probe's is in [window[0], window[1]]. Any of the three tests is left out by passing an empty array.

    Args:
        cells, keys, coordinates: of the n stored rows; each may be empty, meaning "not tested".
        span: lowest and highest of `coordinates`; read even where the rows are not tested one by one.
        probe_rows: the caller's row number of each probe; a row may have several probes.
        window: (low, high), or empty without a window.
        cursor: int64 of shape (6,), all zero at first; where to go on after the output was full.
        out_probe, out_stored: room for results.
    Returns:
        (pairs written, stored rows compared, places of the index that searches looked at). Call again with the same
        cursor while cursor[0] < number of probes.
    Cost: a gallop a probe, and one step a compared row.
    """
    n = span[2]
    room = out_probe.size
    has_cells = cells.size > 0
    has_keys = keys.size > 0
    test_rows = coordinates.size > 0
    has_window = window.size > 0
    found = 0
    compared = 0
    searched = 0
    i = cursor[0]
    j = cursor[1]  # first row of the run that the probe's low allows
    run_start = cursor[2]
    run_stop = cursor[3]
    resumed = cursor[4] == 1  # the output filled up inside this probe's run, at row cursor[5]
    if i == 0 and not resumed:
        run_stop = 0 if has_cells else n
    while i < probe_rows.size:
        inside = False
        if has_window:
            p = probe_coordinates[i]
            if span[1] - p < window[0] or span[0] - p > window[1]:
                i += 1
                resumed = False
                continue
            inside = span[0] - p >= window[0] and span[1] - p <= window[1]
        if not resumed:
            if has_cells:
                cell = probe_cells[i]
                if run_start >= run_stop or cells[run_start] != cell:
                    run_start, looked = lower_bound(cells, run_stop, n, cell)
                    searched += looked
                    run_stop = run_start
                    if run_start < n and cells[run_start] == cell:
                        run_stop = n
                        if cell < 2**63 - 1:
                            run_stop, looked = lower_bound(cells, run_start, n, cell + 1)
                            searched += looked
                    j = run_start
            if has_keys:
                # Lows rise within a cell, so the search never goes back.
                j, looked = lower_bound(keys, j, run_stop, probe_lows[i])
                searched += looked
        k = cursor[5] if resumed else j if has_keys else run_start
        resumed = False
        high = probe_highs[i] if has_keys else 0
        while k < run_stop:
            if has_keys and keys[k] > high:
                break
            if found == room:
                cursor[0], cursor[1], cursor[2], cursor[3], cursor[4], cursor[5] = i, j, run_start, run_stop, 1, k
                return found, compared, searched
            compared += 1
            if test_rows and not inside:
                d = coordinates[k] - probe_coordinates[i]
                if d < window[0] or d > window[1]:
                    k += 1
                    continue
            out_probe[found] = probe_rows[i]
            out_stored[found] = k
            found += 1
            k += 1
        i += 1
    cursor[0], cursor[1], cursor[2], cursor[3], cursor[4] = i, j, run_start, run_stop, 0
    return found, compared, searched
