"""A body whose values cannot be kept, or shown again, is a mistake: what is registered is read by everybody.

JSON as Python reads it has NaN and infinities, which no other JSON has, and halves of surrogate pairs, which no
encoding has. One of either in a catalog would break every list that shows it.
"""

from __future__ import annotations

import json
from typing import Any, Final

from starlette.requests import HTTPConnection

from backend.problems import Problem

_PARSED: Final = "_json"


async def check_body(connection: HTTPConnection) -> None:
    """A dependency of all routes.

    Raises:
        Problem: the request has a JSON body with a value that cannot be kept.
    """
    if (body := vars(connection).get(_PARSED)) is not None:  # read already, if the route takes one
        check_values(body)


def check_values(body: Any) -> None:
    """Refuse numbers that are none, and texts that cannot be encoded.

    Raises:
        Problem: there is one.
    """
    try:
        json.dumps(body, ensure_ascii=False, allow_nan=False).encode()
    except RecursionError:
        raise Problem("bad_request", "the body is nested too deeply; write it flatter") from None
    except UnicodeEncodeError:
        raise _unfit("a text in it has half of a surrogate pair; send it as UTF-8") from None
    except ValueError:
        raise _unfit("a number in it is NaN or larger than any; JSON has neither") from None


def _unfit(why: str) -> Problem:
    return Problem("invalid.value_unfit", f"the body cannot be taken: {why}")
