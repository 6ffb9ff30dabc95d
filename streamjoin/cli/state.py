"""Commands that look into a checkpoint: state ls, state show."""

from __future__ import annotations


def state_ls(directory: str, *, stage: int | None = None) -> None:
    """List the units of a checkpoint: versions, rows, bytes, segments.

    Parameters
    ----------
    directory
        A join's run.checkpoint, or its run.state as a URI.
    stage
        Only this stage of a job of several, counted from 1.
    """
    from streamjoin.state.show import list_units

    print(list_units(directory, stage))


def state_show(directory: str, *, unit: str | None = None, stage: int | None = None) -> None:
    """Show the segments of a checkpoint's units: rows, bytes, event times, ages.

    Parameters
    ----------
    directory
        A join's run.checkpoint, or its run.state as a URI.
    unit
        Only this one: what `state ls` calls it, such as 2.R0, or its number within its stage.
    stage
        Only this stage of a job of several, counted from 1.
    """
    from streamjoin.state.show import show_units

    print(show_units(directory, unit, stage))
