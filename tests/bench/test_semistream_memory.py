"""What the memory benchmark prints, and that it fails where an operator counts more than it may have."""

from __future__ import annotations

import multiprocessing
import re
import sys
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pyarrow as pa
import pytest

from benchmarks import semistream_memory
from streamjoin.relations.versions import Version


@pytest.mark.slow
def test_no_operator_counts_more_than_it_may_have(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "argv", ["semistream_memory", "--rows", "100000", "--rounds", "1"])
    monkeypatch.setattr(semistream_memory, "SHARES", (0.1,))
    assert semistream_memory.main() == 0
    said = capsys.readouterr().out
    for operator in ("ssbj", "meshjoin"):
        line = re.search(rf"^{operator} +10% +(.*)$", said, re.MULTILINE)
        assert line, said
        allowed, counted, _, _, rate, outside = (float(figure.replace(",", "")) for figure in line[1].split())
        assert 0.5 * allowed < counted <= allowed and rate > 0 and outside > 0


@pytest.mark.slow
def test_a_rate_leaves_out_the_time_in_which_its_input_is_made(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    now_s, tuples = 0.0, []

    def clock() -> float:
        """A look at it takes a millisecond, to make a batch a hundred seconds, and nothing else any time."""
        nonlocal now_s
        now_s += 0.001
        return now_s

    def slowly(keys: np.ndarray, number: int) -> pa.RecordBatch:
        nonlocal now_s
        now_s += 100
        tuples.append(len(keys))
        return made(keys, number)

    made = semistream_memory._made
    monkeypatch.setattr(semistream_memory, "_made", slowly)
    monkeypatch.setattr(semistream_memory, "time", SimpleNamespace(perf_counter=clock))
    version = semistream_memory.relation(tmp_path, 20_000)
    found = semistream_memory._joined(tmp_path, "meshjoin", version, 1 << 20, 1)
    assert found.tuples_per_s == pytest.approx((sum(tuples) - found.outside) / (0.001 * len(tuples)))


def test_too_much_is_a_failure(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    class Pool:
        def __enter__(self) -> Pool:
            return self

        def __exit__(self, *_: object) -> None: ...

        def apply(self, work: object, given: tuple[object, ...]) -> object:
            if work is semistream_memory.relation:
                return Version(1, "made", 0, 10, 0, {0: ()}, {})
            return semistream_memory.Found(10, 11, 5, 20, 1.0, 1)

    class Context:
        Pool = staticmethod(lambda processes: Pool())

    monkeypatch.setattr(multiprocessing, "get_context", lambda kind: Context)
    monkeypatch.setattr(sys, "argv", ["semistream_memory"])
    assert semistream_memory.main() == 1
