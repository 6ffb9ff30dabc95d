"""Commands that look into a checkpoint: state ls, state show."""

from __future__ import annotations


def state_ls(directory: str) -> None:
    """List the units of a checkpoint: versions, rows, bytes, segments.

    Parameters
    ----------
    directory
        A join's run.checkpoint, or its run.state as a URI.
    """
    from streamjoin.state.show import list_units

    print(list_units(directory))


def state_show(directory: str, *, unit: int | None = None) -> None:
    """Show the segments of a checkpoint's units: rows, bytes, event times, ages.

    Parameters
    ----------
    directory
        A join's run.checkpoint, or its run.state as a URI.
    unit
        Only this one.
    """
    from streamjoin.state.show import show_units

    print(show_units(directory, unit))
