"""What a job may say of its operator, results and run: those sections of a join file, as far as they are the job's."""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import WithJsonSchema
from typing_extensions import TypeAliasType

from backend.jobs.joinfile import RESULT_FIELDS, RUN_FIELDS
from streamjoin.spec.schema import Schema, operator_schema, section_schema

_PLATFORMS_OWN: dict[str, Schema] = {
    "until_end": {"type": "boolean", "default": False, "description": "the job ends with its streams"},
    "store": {"type": "string", "description": "sqlite, cassandra, hbase or auto; the platform's choice unless set"},
}
"""What a job has beside, or otherwise than, a join file."""


def _some_of(section: str, fields: tuple[str, ...], says: str) -> Schema:
    known = section_schema(section)["properties"] | _PLATFORMS_OWN
    return {
        "type": "object", "description": says, "additionalProperties": False,
        "properties": {field: known[field] for field in fields},
    }  # fmt: skip


# Named, so that the API's description has each of them once.
OperatorIn = TypeAliasType("OperatorIn", Annotated[dict[str, Any], WithJsonSchema(operator_schema())])
ResultsIn = TypeAliasType(
    "ResultsIn",
    Annotated[
        dict[str, Any], WithJsonSchema(_some_of("results", RESULT_FIELDS, "which results are kept, and when they show"))
    ],
)
RunIn = TypeAliasType(
    "RunIn", Annotated[dict[str, Any], WithJsonSchema(_some_of("run", RUN_FIELDS, "how the job runs"))]
)
