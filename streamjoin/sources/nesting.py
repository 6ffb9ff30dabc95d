"""How deeply JSON is nested, settled before a library sees it that calls itself once for each level.

Such a library ends its process with a text of 100 KB that is nothing but brackets, and the guess of a file's columns is
made wherever the file is named.
"""

from __future__ import annotations

import re

import numpy as np

DEPTH_MAX = 60
"""So deep may a value be whose type is guessed; Arrow's own files have types to 64."""
_TEXTS = re.compile(rb'"(?:[^"\\\n]|\\[^\n])*+"?')


def depth_of(text: bytes) -> int:
    """The most brackets that are open at once, outside of strings; strings end with their line at the latest.

    Where the text is not JSON, what the wrong part left open counts on, and what it closed too often does not.
    """
    marks = np.frombuffer(_TEXTS.sub(b"", text), np.uint8)
    opens, closes = (marks == ord("[")) | (marks == ord("{")), (marks == ord("]")) | (marks == ord("}"))
    depths = np.cumsum(opens.astype(np.int64) - closes)
    return int((depths - np.minimum(np.minimum.accumulate(depths), 0)).max(initial=0)) if depths.size else 0
