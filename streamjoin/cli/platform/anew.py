"""A change with which a job begins without its state: what is lost is told, and has to be meant."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any

import cyclopts

from streamjoin.cli.platform.common import note, warn
from streamjoin.errors import InputError

Yes = Annotated[bool, cyclopts.Parameter(negative=(), help="Drop a state that the job could go on with.")]


def tell(found: Mapping[str, Any]) -> None:
    """Tell a person who looks on what a change would drop, if anything."""
    if (drops := found.get("drops")) is not None:
        note(dropped_text(drops))


def agree(found: Mapping[str, Any], *, yes: bool) -> None:
    """Tell what is dropped; what the job could go on with is dropped only where somebody says so.

    Args:
        found: what the change would do.
        yes: it is meant.

    Raises:
        InputError: the job could go on, as far as anybody can tell.
    """
    drops = found.get("drops")
    if drops is None:
        return
    if drops["could_go_on"] is False or yes:
        warn(dropped_text(drops))
        return
    would_do = drops["could_go_on"] and not found["changes"]
    way_out = "`streamjoin jobs restart` goes on with it; say" if would_do else "Say"
    raise InputError(f"{dropped_text(drops)}. {way_out} --yes to drop it")


def dropped_text(drops: Mapping[str, Any]) -> str:
    """What a job that begins anew leaves behind, in a sentence."""
    of = f"of {drops['state_at']}" if drops["state_at"] is not None else "of no batch that is known"
    results = "all results so far" if drops["results"] is None else f"{drops['results']:,} results"
    may = {True: "the job could go on with it", False: "it does not fit", None: "whether it fits cannot be told here"}
    return f"dropped is the state {of}, and {results} are no longer the job's; {may[drops['could_go_on']]}"
