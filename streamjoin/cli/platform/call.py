"""`streamjoin call`: any route of the API, for what has no command of its own."""

from __future__ import annotations

from typing import Annotated, Literal

import cyclopts

from streamjoin.cli.platform.common import HERE, Body, Where, read_document, show

PREFIX = "/api/v1/"


def call(
    method: Literal["GET", "POST", "PUT", "PATCH", "DELETE"],
    path: str,
    *,
    file: Body = None,
    output: Annotated[
        Literal["json", "yaml"], cyclopts.Parameter(name=["-o", "--output"], help="Format of what is shown.")
    ] = "json",
    where: Where = HERE,
) -> None:
    """Call a route of the platform's API, and show what it answers with.

    Parameters
    ----------
    method
        HTTP's.
    path
        Such as /api/v1/config, or config.
    """
    body = None if file is None else read_document(file)
    with where.client() as client:
        answer = client.call(method, PREFIX + path.removeprefix(PREFIX).removeprefix("/"), json=body)
    if answer is not None:
        show(answer, output)
