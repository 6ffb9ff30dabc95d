"""Which fields of a join file may change while a job keeps its state. The fields themselves say so."""

from __future__ import annotations

from streamjoin.operators import registry
from streamjoin.settings.places import fields_on
from streamjoin.settings.setting import KEEPS_STATE, form_of
from streamjoin.sources.registry import SOURCES
from streamjoin.spec.joinfile import Sections


def keeps_state(field: str, operator: str = registry.AUTO) -> bool:
    """Whether another value of a field asks nothing else of what is stored.

    Args:
        field: dotted, such as `run.slots`; what a mapping holds follows what is said of it.
        operator: which one runs the join: a `lookup` may have other `units`, an `asof` may not. Where it is not known,
            it may be any that has the field and says something.
    """
    section, *below = field.split(".")
    ways = [fields_on(Sections, [section, *below])]
    if section == "operator":
        kinds = [registry.REGISTRY[operator]] if operator in registry.REGISTRY else registry.KINDS
        ways += [fields_on(kind.settings, below) for kind in kinds]
    if section == "streams":
        ways += [fields_on(kind.settings, below[1:]) for kind in SOURCES.values()]
    said = [[form[KEEPS_STATE] for one in way if KEEPS_STATE in (form := form_of(one))] for way in ways]
    # What is said closest to the field counts, and all kinds that say something must agree.
    return any(said) and all(way[-1] for way in said if way)
