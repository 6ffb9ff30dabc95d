"""Which fields of a join file may change while a job keeps its state. The fields themselves say so."""

from __future__ import annotations

from streamjoin.operators import registry
from streamjoin.settings.places import fields_on
from streamjoin.settings.setting import KEEPS_STATE, form_of
from streamjoin.spec.joinfile import Sections


def keeps_state(field: str) -> bool:
    """Whether another value of a field asks nothing else of what is stored.

    Args:
        field: dotted, such as `run.slots`; what a mapping holds follows what is said of it.
    """
    section, *below = field.split(".")
    models = [kind.settings for kind in registry.REGISTRY.values()] if section == "operator" else []
    ways = [fields_on(Sections, [section, *below]), *(fields_on(model, below) for model in models)]
    said = [[form[KEEPS_STATE] for one in way if KEEPS_STATE in (form := form_of(one))] for way in ways]
    # What is said closest to the field counts, and every operator that has it must agree.
    return any(said) and all(way[-1] for way in said if way)
