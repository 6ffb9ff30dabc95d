"""What a job is, apart from its name, its streams and its relations: sections of a join file, as people gave them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, fields, replace
from typing import Any, Self

from sqlalchemy import JSON, Dialect, TypeDecorator

Section = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class JobSpec:
    """Two of them are equal where they say the same.

    Args:
        query: the job's own.
        queries: others beside it, by name: `{query, stopped}`.
        operator, results, run: as in a join file.
    """

    query: str
    queries: Section = field(default_factory=dict)
    operator: Section = field(default_factory=lambda: {"name": "auto"})
    results: Section = field(default_factory=dict)
    run: Section = field(default_factory=dict)

    @classmethod
    def of(cls, content: Mapping[str, Any]) -> Self:
        """What `to_json` gave; sections other than the query may be empty or missing."""
        others = {name: content[name] for name in SECTIONS if name != "query" and content.get(name)}
        return cls(query=content["query"], **others)

    def to_json(self) -> dict[str, Any]:
        """As the catalog keeps it."""
        return asdict(self)

    @property
    def store(self) -> str | None:
        """The kind of store that keeps the results; None where that is for the platform to say."""
        store: str | None = self.results.get("store")
        return store

    @property
    def until_end(self) -> bool:
        """Whether the job ends when its streams do."""
        return bool(self.run.get("until_end"))

    def with_store(self, store: str) -> Self:
        """The same with its results in this kind of store."""
        return replace(self, results={**self.results, "store": store})

    def with_slots(self, slots: int) -> Self:
        """The same in so many slots."""
        return replace(self, run={**self.run, "slots": slots})

    def changed(self, given: Mapping[str, Any]) -> Self:
        """The same with other sections.

        Results stay in the store they are in, unless another one is given; a query beside the job's own is added, or
        takes the place of the one with its name.
        """
        queries = {**self.queries, **given.get("queries", {})}
        spec = self.of({**self.to_json(), **given, "queries": queries})
        return spec.with_store(self.store) if self.store is not None and spec.store is None else spec


SECTIONS = tuple(section.name for section in fields(JobSpec))


class JobSpecColumn(TypeDecorator[JobSpec]):
    """A spec as JSON."""

    impl = JSON
    cache_ok = True

    def process_bind_param(self, value: JobSpec | None, dialect: Dialect) -> dict[str, Any] | None:
        """To the catalog."""
        return None if value is None else value.to_json()

    def process_result_value(self, value: Any, dialect: Dialect) -> JobSpec | None:
        """From the catalog."""
        return None if value is None else JobSpec.of(value)
