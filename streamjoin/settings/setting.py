"""How a setting is declared: in a model, with its type, its bounds and the sentence that people read.

    class MatrixSettings(Settings):
        rows: Annotated[Units | None, setting("partitions of the first stream", unset="...", counts_units=True)] = None

The join file's fields, its JSON Schema, the API's schemas, the tables in docs, the dashboard's forms and what a running
job may change follow from such models; see `spec/schema.py` and `docs/join-file.schema.json`.
"""

from __future__ import annotations

from typing import Any

from pydantic import BaseModel, ConfigDict, Field
from pydantic.fields import FieldInfo

FORM = "x-form"
"""In a schema: what a form needs to know of a field, beside what JSON Schema has words for."""
KEEPS_STATE, COUNTS_UNITS = "keeps_state", "counts_units"


class Settings(BaseModel):
    """What all parts of a join file share: unknown fields are errors."""

    model_config = ConfigDict(extra="forbid", frozen=True)


def setting(
    says: str,
    *,
    unset: str | None = None,
    label: str | None = None,
    keeps_state: bool | None = None,
    counts_units: bool = False,
    compared: bool = False,
) -> Any:
    """What stands in the annotation of a setting.

    Args:
        says: the sentence that people read.
        unset: what holds while it is not given, where its default does not say so.
        label: what a form calls it; its name unless given.
        keeps_state: whether a job that is changed goes on where it was; holds for all below it that do not say.
        counts_units: it says how many units there are.
        compared: operators are compared by it, so that form has it, too.
    """
    form = {
        "unset": unset,
        "label": label,
        KEEPS_STATE: keeps_state,
        COUNTS_UNITS: counts_units or None,
        "compared": compared or None,
    }
    given = {name: value for name, value in form.items() if value is not None}
    extra: dict[str, Any] = {FORM: given}
    return Field(description=says, json_schema_extra=extra if given else None)


def form_of(field: FieldInfo) -> dict[str, Any]:
    """What a setting says for forms, by the names of `setting`'s arguments."""
    extra = field.json_schema_extra
    found = extra.get(FORM) if isinstance(extra, dict) else None
    return found if isinstance(found, dict) else {}
