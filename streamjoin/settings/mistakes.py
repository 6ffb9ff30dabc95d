"""What is wrong with a join file, in a sentence that says what would be right."""

from __future__ import annotations

from pydantic import BaseModel, ValidationError

from streamjoin.errors import InputError
from streamjoin.settings.places import fields_at
from streamjoin.settings.values import cut, shown
from streamjoin.settings.variants import REFUSED, near


def first_error(wrong: ValidationError, model: type[BaseModel]) -> InputError:
    """The mistake of a file that says most, as a sentence with its field.

    Args:
        model: what the file was read as.
    """
    # A misspelt field is also a missing one; what stands there tells more than what does not.
    error = min(
        wrong.errors(),
        key=lambda error: (error["loc"][-1:] != ("[key]",), error["type"] not in (REFUSED, "extra_forbidden")),
    )
    place = [str(part) for part in error["loc"]]
    if place[-1] == "[key]":
        return InputError(f"{shown(error['input'])} is not a name; names are texts, so put it into quotes",
                          field=cut(".".join(place[:-2])))  # fmt: skip
    field = cut(".".join(place))
    match error["type"]:
        case "extra_forbidden":
            return InputError(near(place[-1], fields_at(model, place[:-1])), field=field)
        case "missing":
            return InputError(f"is missing{_meant(place)}", field=field)
        case kind if kind == REFUSED:
            return InputError(error["msg"], field=field)
        case "value_error":
            return InputError(_not_empty(error["input"], place) or str(error["ctx"]["error"]), field=field)
        case "model_type" | "dict_type":
            needed = f"needs a mapping{_meant(place)}"
        case "string_type":
            needed = "needs a text"
        case "int_type" | "int_parsing" | "int_from_float" | "int_parsing_size":
            needed = "needs a whole number"
        case "float_type" | "float_parsing":
            needed = "needs a number"
        case "bool_type" | "bool_parsing":
            needed = "needs true or false"
        case "greater_than_equal":
            needed = f"must be at least {error['ctx']['ge']}"
        case "less_than_equal" | "less_than":
            needed = f"must be at most {error['ctx'].get('le', error['ctx'].get('lt'))}"
        case "literal_error":
            needed = f"must be {error['ctx']['expected']}"
        case _:
            needed = error["msg"]
    got = error["input"]
    return InputError(_not_empty(got, place) or f"{needed}, not {shown(got)}", field=field)


_MEANT = {
    "streams": ": a name and a description for each stream",
    "relations": ": a name and a description for each relation",
    "relations.source": "; it is parquet, csv, jsonl or arrow",
    "relations.path": "; it names a file or a folder",
    "queries": ": a name, a query and results for each",
    "time": '; it names the column of the event time, or is "arrival" for data without one',
    "source": "; it is parquet, csv, jsonl, arrow, kafka or generator",
    "operator": " such as {name: matrix}",
    "results": " such as {parquet: out/pairs}",
    "run": " such as {slots: 2}",
    "schema": " such as {ts: timestamp, k: int64}",
    "shed": " such as {threshold: 2000000, capacity: 4000000}",
    "threshold": "; it is the number of live tuples a unit from which on tuples are shed",
    "capacity": "; it is the number of live tuples a unit at which all tuples are shed",
}


def _meant(place: list[str]) -> str:
    return _MEANT.get(f"{place[0]}.{place[-1]}") or _MEANT.get(place[-1], "")


def _not_empty(value: object, place: list[str]) -> str | None:
    if value is None and place[-2:] == ["csv", "null"]:
        return 'is empty, as YAML reads NULL and ~; put the text into quotes, "NULL"'
    return "is empty; give it a value or leave the field out" if value is None else None
