"""Compare our record decoders with msgspec and fastavro, on one core, in turn.

    python -m benchmarks.records                 every block of JSON and Avro, and records one at a time
    python -m benchmarks.records --quick         toy sizes, in seconds; shows that it works, measures nothing

Each pair of turns is one of ours and one of the library's over the same block; which goes first alternates. Printed are
the median rates, in rows per second of processor time, and the median, lowest and highest ratio of the two. Before
anything is measured, both have to give the same rows and find the same records bad.
"""

from __future__ import annotations

import argparse
import statistics
import time
from collections.abc import Callable

import pyarrow as pa

from benchmarks import provenance, quiet
from benchmarks.records.by_fastavro import FastavroDecoder
from benchmarks.records.by_msgspec import MsgspecDecoder
from benchmarks.records.inputs import Input, avro_inputs, json_inputs
from streamjoin.intake.records import Decoder, decoder
from streamjoin.intake.records.record_bytes import RecordBytes

ROWS = 20_000
ALONE = 200
HEAD = f"{'':<8}{'records':<28}{'ours':>12}{'library':>12}{'objects':>12}   ours / library"


def main() -> int:
    arguments = parse_arguments()
    rows, pairs = (400, 2) if arguments.quick else (ROWS, arguments.pairs)
    others = quiet.look()
    print(f"commit {provenance.commit()}; others used {others.share:.0%} of the processors' time before")
    print(f"rows/s of processor time, median of {pairs} pairs of turns over {rows:,} records; objects: no columns made")
    print(HEAD)
    for format, inputs in (("json", json_inputs(rows)), ("avro", avro_inputs(rows))):
        for each in inputs:
            print(compare(format, each, pairs), flush=True)
        print(compare_alone(format, inputs[0], pairs), flush=True)
    return 0


def parse_arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.records", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--pairs", type=int, default=21, help="turns of each (%(default)s)")
    parser.add_argument("--quick", action="store_true", help="toy sizes")
    return parser.parse_args()


def compare(format: str, given: Input, pairs: int) -> str:
    """A line for one block."""
    ours, theirs, objects = _readers(format, given)
    check_same(given, ours, theirs)
    return _line(
        format, given.name, len(given.values), pairs,
        lambda: ours.decode(given.values), lambda: theirs.decode(given.values), objects,
    )  # fmt: skip


def compare_alone(format: str, given: Input, pairs: int) -> str:
    """A line for records that come one at a time, each in a block of its own."""
    ours, theirs, _ = _readers(format, given)
    blocks = [given.values.slice(place, 1).take(pa.array([0])) for place in range(min(ALONE, len(given.values)))]

    def each(reader: Decoder) -> Callable[[], object]:
        return lambda: [reader.decode(block) for block in blocks]

    return _line(format, "flat, a block for each", len(blocks), pairs, each(ours), each(theirs), None)


def _readers(format: str, given: Input) -> tuple[Decoder, Decoder, Callable[[], object]]:
    """Ours, the library's, and the library's without guards and columns."""
    if format == "json":
        by_msgspec = MsgspecDecoder(given.schema)
        return decoder("json", given.schema), by_msgspec, lambda: by_msgspec.objects(given.values.to_pylist())
    assert given.avro is not None
    by_fastavro = FastavroDecoder(given.schema, given.avro)
    ours = decoder("avro", given.schema, avro_schema=given.avro)
    return ours, by_fastavro, lambda: by_fastavro.objects(RecordBytes.of(given.values))


def check_same(given: Input, ours: Decoder, theirs: Decoder) -> None:
    """Raise `AssertionError` unless both give the same rows and the same bad records."""
    one, other = ours.decode(given.values), theirs.decode(given.values)
    different = one.positions.tolist() != other.positions.tolist() or not one.rows.equals(other.rows)
    if different or [bad.position for bad in one.bad] != [bad.position for bad in other.bad]:
        raise AssertionError(f"{given.name}: the two do not read the same")


def _line(
    format: str,
    name: str,
    rows: int,
    pairs: int,
    ours: Callable[[], object],
    theirs: Callable[[], object],
    objects: Callable[[], object] | None,
) -> str:
    seconds: dict[str, list[float]] = {"ours": [], "theirs": [], "objects": []}
    calls = {"ours": ours, "theirs": theirs}
    for turn in range(pairs + 1):
        for which in sorted(calls, reverse=bool(turn % 2)):
            taken_s = _seconds(calls[which])
            if turn:  # The first turn compiles.
                seconds[which].append(taken_s)
        if objects is not None:
            seconds["objects"].append(_seconds(objects))
    rates = {which: rows / statistics.median(taken) if taken else 0.0 for which, taken in seconds.items()}
    ratios = [theirs_s / ours_s for ours_s, theirs_s in zip(seconds["ours"], seconds["theirs"], strict=True)]
    shown = "".join(f"{rates[which]:>12,.0f}" if rates[which] else f"{'':>12}" for which in seconds)
    return f"{format:<8}{name:<28}{shown}   {statistics.median(ratios):.2f}, {min(ratios):.2f} to {max(ratios):.2f}"


def _seconds(call: Callable[[], object]) -> float:
    begun_s = time.process_time()
    call()
    return time.process_time() - begun_s


if __name__ == "__main__":
    raise SystemExit(main())
