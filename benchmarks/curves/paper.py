"""What SplitJoin's text says of its curves, in numbers. The pictures' axes are not in the text, so nothing else is.

Source: "SplitJoin: a scalable, low-latency stream join architecture with adjustable ordering precision" (USENIX ATC
2016), abstract and evaluation section. One machine of 32 cores; equal windows of two streams; outer order.
"""

from __future__ import annotations

CORES = 28
"""Where the numbers are given; on the 32 cores of the paper's machine, 32 join cores leave none for the helpers."""
CORES_MAX = 32
TIME_WINDOWS_MIN = (5, 10, 15)
TIME_WINDOW_MIN = 15
TUPLES_PER_S_TIME = 4400.0
"""Figure 12: 28 cores, window of 15 minutes; about 2^21 tuples a stream."""
TUPLES_PER_S_COUNT = 5200.0
"""Figure 16: 28 cores, window of 2^21 tuples a stream."""
COUNT_WINDOW = 1 << 21
GAIN_THROUGHPUT = 1.6
"""Figure 12: over the low-latency handshake join, 15 minutes, at the best."""
VISITING_MS = 8.1
"""Figure 13: SplitJoin, 28 cores, 15 minutes."""
CHAIN_VISITING_MS = 26.0
"""Figure 13: the low-latency handshake join. The text breaks off behind "26"; 3.3 x 8.1 would be 26.7."""
GAIN_VISITING = 3.3
GAIN_VISITING_COUNT = 8.3
"""Figure 18: SplitJoin with a count window against the low-latency handshake join with a time window, 28 cores."""
GAIN_COUNT_OVER_TIME = 2.5
"""Figure 18: visiting latency of SplitJoin, time window over count window, 28 cores."""
STAR_INTERVAL_FREE = 1 << 11
"""Figure 19: stars no closer than this cost nothing, closer ones do."""
SUB_WINDOWS = (1 << 12, 1 << 13, 1 << 14, 1 << 15)
"""Figures 17 and 19: tuples in a core's sub-window."""
