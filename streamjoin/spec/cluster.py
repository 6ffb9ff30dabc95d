"""The cluster of a join file: where its tasks run, when that is not this machine."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Annotated, Final

from pydantic import BeforeValidator, Field, WithJsonSchema

from streamjoin.errors import InputError
from streamjoin.settings.setting import Settings, setting
from streamjoin.settings.values import SLOTS_MAX, Count, Flag, Setting, shown

LOCAL: Final = "local"
MASTERS: Final = "local, spark://host:port, yarn or k8s://host:port"
_ADDRESS = r"(?:[A-Za-z0-9](?:[A-Za-z0-9._-]*[A-Za-z0-9])?|\[[0-9A-Fa-f:.]+\])"
_HOST = re.compile(rf"(?={_ADDRESS}\Z).{{1,253}}")
_SPARK = re.compile(rf"spark://{_ADDRESS}:[0-9]{{1,5}}(?:,{_ADDRESS}:[0-9]{{1,5}})*")
_KUBERNETES = re.compile(rf"k8s://(?:https?://)?{_ADDRESS}(?::[0-9]{{1,5}})?(?:/[A-Za-z0-9._/-]*)?")
_LOCAL_THREADS = re.compile(r"local\[[0-9*,]*\]")
_MEMORY = re.compile(r"([1-9][0-9]{0,6})([mg])")
MEMORY_MIB_MIN: Final = 450
"""Spark refuses executors with less."""


def parse_master(value: object) -> str:
    """Spark's name of a cluster, or `local`."""
    if not isinstance(value, str):
        raise ValueError(f"{shown(value)} is not a master; write {MASTERS}")
    if "@" in value or "?" in value:  # which is not repeated: it may hold a password
        raise ValueError(
            f"has @ or ? in it, and a master is an address alone; write {MASTERS}, and secrets of the cluster where "
            "Spark looks for them"
        )
    if _LOCAL_THREADS.fullmatch(value):
        raise ValueError(f"{shown(value)} says how many threads, which is run.slots here; write local")
    if not (value in (LOCAL, "yarn") or _SPARK.fullmatch(value) or _KUBERNETES.fullmatch(value)):
        raise ValueError(f"{shown(value)} is not a master; write {MASTERS}")
    for port in re.findall(r":([0-9]+)", value):
        if not 0 < int(port) <= 65_535:
            raise ValueError(f"{shown(value)} has a port above 65535, or 0; write {MASTERS}")
    return value


def parse_memory(value: object) -> str:
    """Memory as Spark writes it, such as 4g or 900m."""
    match = _MEMORY.fullmatch(value) if isinstance(value, str) else None
    if match is None:
        raise ValueError(f"{shown(value)} is not an amount of memory; write a whole number and m or g, such as 4g")
    if int(match[1]) * (1024 if match[2] == "g" else 1) < MEMORY_MIB_MIN:
        raise ValueError(f"{shown(value)} is too little; Spark's executors need {MEMORY_MIB_MIN}m or more")
    return match[0]


def parse_host(value: object) -> str:
    """A host's name or address, without a port."""
    if not isinstance(value, str) or not _HOST.fullmatch(value):
        raise ValueError(f"{shown(value)} is not a host; write its name or address without a port, such as 10.0.0.5")
    return value


Master = Annotated[str, BeforeValidator(parse_master), WithJsonSchema({"type": "string"})]
Memory = Annotated[str, BeforeValidator(parse_memory), WithJsonSchema({"type": "string"})]
Host = Annotated[str, BeforeValidator(parse_host), WithJsonSchema({"type": "string"})]


class ExecutorsFile(Settings):
    """`run.executors`: how many there are at least and at most, and how large one is."""

    min: Annotated[Count, setting("so many are kept")] = 1
    max: Annotated[
        Count | None, setting("so many while there is work for them", unset="as many as the slots keep busy")
    ] = None
    cores: Annotated[Count, setting("slots that one works on at the same time")] = 1
    memory: Annotated[Memory, setting("Java heap of one; Python's memory is beside it")] = "1g"

    def most(self, slots: int) -> int:
        """So many executors at most: more than the slots keep busy would wait for work."""
        return max(self.max if self.max is not None else -(-slots // self.cores), self.min)


class ClusterFile(Settings):
    """What `run:` says of where tasks run."""

    spark: Annotated[dict[str, Setting], setting("Spark settings, name -> value, over those that StreamJoin sets")] = (
        Field(default_factory=dict)
    )
    master: Annotated[
        Master, setting("where tasks run: local, or a cluster's spark://host:port, yarn or k8s://host:port")
    ] = LOCAL
    executors: Annotated[
        ExecutorsFile | None,
        setting("on a cluster, such as {min: 2, max: 20, cores: 4, memory: 4g}", unset="as the cluster gives them"),
    ] = None
    driver_host: Annotated[
        Host | None, setting("the name or address by which executors call back", unset="found out")
    ] = None
    shared: Annotated[
        Flag, setting("true: the folders named here are mounted at the same path on all machines of the cluster")
    ] = False


@dataclass(frozen=True, slots=True)
class Cluster:
    """Where tasks run.

    Args:
        executors: None for what the cluster gives unasked.
        driver_host: what executors call back; None to find it out.
    """

    master: str
    executors: ExecutorsFile | None = None
    driver_host: str | None = None


def slots_of(executors: ExecutorsFile | None) -> int | None:
    """How many slots all executors can work on at the same time; None where nobody says."""
    return None if executors is None or executors.max is None else min(executors.max * executors.cores, SLOTS_MAX)


_OURS: Final = {"spark.master": "run.master", "spark.driver.host": "run.driver_host"}
"""Settings of Spark's that have a field of their own."""
_OF_EXECUTORS: Final = {
    "spark.executor.cores": "cores",
    "spark.executor.memory": "memory",
    "spark.executor.instances": "min and max",
    "spark.dynamicAllocation.enabled": "min and max",
    "spark.dynamicAllocation.minExecutors": "min",
    "spark.dynamicAllocation.initialExecutors": "min",
    "spark.dynamicAllocation.maxExecutors": "max",
}


def check_executors(executors: ExecutorsFile, place: str = "") -> None:
    """Refuse fields that contradict each other.

    Args:
        place: what stands before their names.
    """
    if executors.max is not None and executors.min > executors.max:
        raise InputError(f"is {executors.min}, and max is {executors.max}; min is max at most", field=f"{place}min")


def check_cluster(run: ClusterFile) -> None:
    """Refuse fields of `run` that contradict each other.

    Raises:
        InputError: with the field.
    """
    master, executors, spark = run.master, run.executors, run.spark
    if executors is not None:
        check_executors(executors, "run.executors.")
    if master == LOCAL:
        for field, value in (("executors", executors), ("driver_host", run.driver_host)):
            if value is not None:
                raise InputError(
                    "is for a cluster, and run.master is local; name the cluster there, or leave this out",
                    field=f"run.{field}",
                )
    for name in spark:
        if (ours := _OURS.get(name)) is not None:
            raise InputError(f"has a field of its own; write {ours}", field=f"run.spark.{name}")
        if executors is not None and (part := _OF_EXECUTORS.get(name)) is not None:
            raise InputError(
                f"says what run.executors says, too; write {part} there, or leave run.executors out",
                field=f"run.spark.{name}",
            )
    if spark.get("spark.submit.deployMode", "client") != "client":
        raise InputError(
            "is client here: the driver is the process that you start, wherever you start it; leave it out",
            field="run.spark.spark.submit.deployMode",
        )
    if master.startswith("k8s://") and not (
        spark.keys() & {"spark.kubernetes.container.image", "spark.kubernetes.executor.container.image"}
    ):
        raise InputError(
            "has no spark.kubernetes.container.image; name an image with Python, Spark and StreamJoin's packages",
            field="run.spark",
        )
