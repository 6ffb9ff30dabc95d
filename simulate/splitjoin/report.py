"""Where the time of a result went, and what was done, from a run's output and its actors."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from simulate.splitjoin.gathering import Left
from simulate.splitjoin.messages import Result
from simulate.splitjoin.system import SplitJoin


@dataclass(frozen=True, slots=True)
class Stages:
    """Mean times of results in us, by the stages of the evaluation section.

    Args:
        distribution: from arrival until a region began with the newer tuple, waiting included.
        execution: until the region found the pair.
        gathering: until the pair left, waiting for stars included.
        end_to_end: from arrival until it left.
        visiting: from the later of both arrivals until the pair was found.
    """

    distribution: float
    execution: float
    gathering: float
    end_to_end: float
    visiting: float


def stages(output: Sequence[Left]) -> Stages:
    """Of the results in an output; there must be one."""
    results = [(left.at_us, left.message) for left in output if isinstance(left.message, Result)]
    if not results:
        raise ValueError("no result, no stages")

    def mean(values: list[int]) -> float:
        return sum(values) / len(values)

    return Stages(
        distribution=mean([result.started_us - result.newer.arrived_us for _, result in results]),
        execution=mean([result.matched_us - result.started_us for _, result in results]),
        gathering=mean([at_us - result.matched_us for at_us, result in results]),
        end_to_end=mean([at_us - result.newer.arrived_us for at_us, result in results]),
        visiting=mean([visiting_us(result) for _, result in results]),
    )


def visiting_us(result: Result) -> int:
    """T_match - max(t_r, t_s): a partner that came late does not count as latency."""
    return result.matched_us - max(result.newer.arrived_us, result.older.arrived_us)


@dataclass(frozen=True, slots=True)
class Totals:
    """What a whole run did.

    Args:
        received: tuples that regions' cores were handed, k for each tuple.
        tuples_per_second: input tuples of both streams.
        waited_us: at each merger's input, how long others waited for it.
    """

    received: int
    stored: int
    comparisons: int
    results: int
    expired: int
    stars: int
    tuples_per_second: float
    sub_windows: dict[str, int]
    depth_max: dict[str, int]
    waited_us: dict[tuple[str, str], int]

    @property
    def match_probability(self) -> float:
        """Results of a comparison."""
        return self.results / self.comparisons if self.comparisons else 0.0


def totals(run: SplitJoin) -> Totals:
    """Of a run."""
    regions = run.regions.values()
    actors = [*run.distributors, *regions, *run.mergers.values(), run.combiner, run.sink]
    seconds = run.network.now_us / 1e6
    return Totals(
        received=sum(sum(region.seen.values()) for region in regions) // 2,
        stored=sum(region.stored for region in regions),
        comparisons=sum(region.comparisons for region in regions),
        results=sum(region.results for region in regions),
        expired=sum(region.window.expired for region in regions),
        stars=sum(region.stars for region in regions),
        tuples_per_second=len(run.source.sequence) / seconds if seconds else float("inf"),
        sub_windows={region.name: len(region.window) for region in regions},
        depth_max={actor.name: actor.depth_max for actor in actors},
        waited_us={
            (merger.name, port): waited
            for merger in (*run.mergers.values(), run.combiner)
            for port, waited in merger.waited_us.items()
        },
    )
