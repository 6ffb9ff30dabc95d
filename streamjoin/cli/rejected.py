"""The command that shows which rows are missing from the results of a join file."""

from __future__ import annotations

import sys
from pathlib import Path

from streamjoin.cli.joinfile import Set, load_join
from streamjoin.cli.platform.rejected import RejectedOutput, RowLimit, Rows
from streamjoin.errors import InputError


def show_rejected(
    file: Path,
    *,
    rows: Rows = False,
    stream: str | None = None,
    reason: str | None = None,
    limit: RowLimit = 20,
    before: str | None = None,
    set: Set = None,
    output: RejectedOutput = "table",
) -> None:
    """Show which rows are missing from the results of a join file: how many by stream and reason, or each one.

    Parameters
    ----------
    file
        The join file.
    stream
        Only rows of this stream.
    reason
        Only rows with this reason.
    limit
        So many rows, newest first; all of them, oldest first, with -o ndjson.
    before
        Only rows before the one with this id.
    """
    from streamjoin.cli.platform.rejected import show_counts, show_rows
    from streamjoin.intake import rejected
    from streamjoin.spec.job import IDENTITY_FILE, dead_letters_folder

    checkpoint = load_join(file, set).checkpoint
    if not (checkpoint / IDENTITY_FILE).exists():
        raise InputError(f"{file} has not been run yet: there is no checkpoint {checkpoint}", field="run.checkpoint")
    folder = dead_letters_folder(checkpoint)
    if output == "ndjson":
        for lines in rejected.lines(folder, stream=stream, reason=reason):
            sys.stdout.buffer.write(lines)
    elif rows:
        try:
            found, has_more = rejected.page(folder, limit, stream=stream, reason=reason, before=before)
        except ValueError as wrong:
            raise InputError(f"--before: {wrong}") from None
        show_rows(found, has_more, output)
    else:
        show_counts(rejected.as_rows(rejected.read_head(folder), stream, reason), output)
