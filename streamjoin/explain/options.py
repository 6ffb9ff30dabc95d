"""The operators that could run a join, side by side: what each would cost, or why it cannot."""

from __future__ import annotations

from collections.abc import Container, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from streamjoin.explain.figures import bytes_text, figure, padded
from streamjoin.operators import registry
from streamjoin.operators.costs import BlockSize, Prediction
from streamjoin.operators.costs.growth import SLOTS_MAX, Growth

HEAD = (
    "operator", "memory", "replication", "comparisons/s", "bytes sent/s", "most to one unit/s", "useful slots",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Option:
    """One operator in an explanation: its prediction, or why it cannot run the query, or why there is neither.

    Args:
        growth: how many slots it can use, where that is known.
    """

    name: str
    system: str
    prediction: Prediction | None
    refusal: str | None
    unknown: str = ""
    growth: Growth | None = None

    def to_json(self, names: Sequence[str]) -> dict[str, Any]:
        """For the API; `names` are those of the streams."""
        found = self.prediction
        return {
            "name": self.name,
            "refusal": self.refusal,
            "memory_bytes": found and round(found.memory_bytes),
            "replication": found and round(found.replication, 3),
            "comparisons_per_s": found and round(found.comparisons_per_s),
            "bytes_per_s": found and round(found.bytes_per_s),
            "busiest_bytes_per_s": found and round(found.busiest_bytes_per_s),
            "growth": found and self.growth and asdict(self.growth),
            **(_block_to_json(names, found.block) if found and found.block else {}),
        }

    def refusal_text(self, is_blind: bool, has_ways: bool) -> str:
        """Why there are no figures.

        Args:
            is_blind: nothing could be sampled.
            has_ways: costs of trees and rings are told, whichever operator runs the stages of a tree.
        """
        if self.refusal:
            return f"cannot: {self.refusal}"
        if registry.entry(self.name).predict is None:
            return f"can run it; {self.unknown or 'no formula tells its costs'}"
        if is_blind:
            return "can run it; its costs need the streams' rates, not known yet"
        if has_ways:
            return "can run it; what order costs what is below"
        return "can run it; what stages send to one another is not predicted"


def table(
    names: Sequence[str], options: Sequence[Option], read: Container[str], *, is_blind: bool, has_ways: bool
) -> str:
    """A table of what every operator would cost.

    Args:
        names: of the streams.
        read: operators whose rate is predicted elsewhere, from what they read of a relation.
        is_blind, has_ways: see `Option.refusal_text`.
    """
    rows = [HEAD, *(_cells(option) for option in options if option.prediction)]
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    widths[0] = max(11, *(len(option.name) for option in options))
    lines = [padded(HEAD, widths)]
    for option in options:
        if option.name in read:
            lines.append(f"{option.name:<{widths[0]}}  can run it; its rate is predicted above")
        elif option.prediction:
            lines.append(padded(_cells(option), widths))
        else:
            lines.append(f"{option.name:<{widths[0]}}  {option.refusal_text(is_blind, has_ways)}")
    if len(rows) > 1:
        lines += ["", "comparisons are those of a nested loop; an index needs a small part of them"]
    if any(option.growth and option.prediction for option in options):
        lines.append("useful slots: with twice as many, each slot does less than half of what one alone does")
    for option in options:
        if option.prediction and option.prediction.block:
            lines.append(f"{option.name} forwards {_block_text(names, option.prediction.block)}")
    return "\n".join(lines)


def _cells(option: Option) -> tuple[str, ...]:
    found = option.prediction
    assert found is not None
    return (
        option.name,
        bytes_text(found.memory_bytes),
        f"{found.replication:,.2f}",
        figure(found.comparisons_per_s),
        bytes_text(found.bytes_per_s),
        bytes_text(found.busiest_bytes_per_s),
        _slots_text(option.growth),
    )


def _slots_text(found: Growth | None) -> str:
    if found is None:
        return "-"
    return f"over {SLOTS_MAX:,}" if found.slots is None else f"{found.slots:,}"


def _block_text(names: Sequence[str], block: BlockSize) -> str:
    sizes = " and ".join(
        f"{name} in blocks of {tuples:,} (J = {target:.3g})"
        for name, tuples, target in zip(names, block.tuples, block.target, strict=True)
    )
    return (
        f"{sizes}; a = {block.weight:g}, C_ser = {block.cost_serialization:g}, C_tr = {block.cost_transmission:g}, "
        "rates and windows as sampled"
    )


def _block_to_json(names: Sequence[str], block: BlockSize) -> dict[str, Any]:
    return {
        "block_tuples": dict(zip(names, block.tuples, strict=True)),
        "block_target": dict(zip(names, block.target, strict=True)),
        "weight": block.weight,
        "cost_serialization": block.cost_serialization,
        "cost_transmission": block.cost_transmission,
    }
