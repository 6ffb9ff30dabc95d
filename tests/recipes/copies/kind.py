"""copies, as the registry has it: its settings, and how a plan gets one."""

from __future__ import annotations

from typing import Annotated

from streamjoin.operators.kind import OperatorKind
from streamjoin.plan.sharing import Pairs
from streamjoin.settings.setting import Settings, setting
from streamjoin.settings.values import Units
from tests.recipes.copies import Copies


class CopiesSettings(Settings):
    """How many there are."""

    copies: Annotated[
        Units | None,
        setting("copies of the first stream", unset="one per slot", label="Copies", counts_units=True, compared=True),
    ] = None


def build(settings: CopiesSettings, plan: Pairs, slots: int) -> Copies:
    """The copies of a plan."""
    return Copies(settings.copies or slots)


COPIES = OperatorKind("copies", "an operator for tests", CopiesSettings, build)
