"""Routes that are read by the hundred a second.

FastAPI looks at every parameter and every dependency of a route anew for each request, which costs more than most
answers do. Here they are settled once, when the route is made, and one model checks what a request gives.
"""

from __future__ import annotations

import inspect
from collections.abc import Awaitable, Callable, Coroutine
from typing import Any, get_type_hints

from fastapi import Request, Response
from fastapi.exceptions import RequestValidationError
from fastapi.params import Depends, Param
from fastapi.routing import APIRoute
from pydantic import BaseModel, ValidationError, create_model

from backend.auth.actor import AtLeast
from backend.context import of_request

Find = Callable[[Request], Awaitable[Any]]


class ReadRoute(APIRoute):
    """A route whose endpoint returns a response, and takes nothing but `Context`, an actor, the request, and parameters
    of path and query. They are declared as everywhere else, which is what the API's description shows.

    Raises:
        TypeError: the endpoint takes something else.
    """

    def get_route_handler(self) -> Callable[[Request], Coroutine[Any, Any, Response]]:
        """FastAPI's."""
        endpoint = self.endpoint
        finds, fields = _settled(endpoint)
        model = create_model(f"Parameters of {endpoint.__name__}", **fields)

        async def answer(request: Request) -> Response:
            # Who may not ask is told so, whatever else is wrong.
            given = {name: await find(request) for name, find in finds.items()}
            response = await endpoint(**given, **_checked(model, request))
            assert isinstance(response, Response)
            return response

        return answer


def _settled(endpoint: Callable[..., Any]) -> tuple[dict[str, Find], dict[str, Any]]:
    """What finds each argument that is no parameter of a request, and the model's fields for those that are."""
    finds: dict[str, Find] = {}
    fields: dict[str, Any] = {}
    hints = get_type_hints(endpoint, include_extras=True)
    for name, parameter in inspect.signature(endpoint).parameters.items():
        hint = hints[name]
        marks = getattr(hint, "__metadata__", ())
        depends = next((mark.dependency for mark in marks if isinstance(mark, Depends)), None)
        if hint is Request:
            finds[name] = _request
        elif isinstance(depends, AtLeast):
            finds[name] = depends.actor
        elif depends is of_request:
            finds[name] = of_request
        elif any(isinstance(mark, Param) for mark in marks):
            fields[name] = hint, ... if parameter.default is parameter.empty else parameter.default
        else:
            raise TypeError(f"{endpoint.__name__}: a read has no argument such as {name}")
    return finds, fields


async def _request(request: Request) -> Request:
    return request


def _checked(model: type[BaseModel], request: Request) -> dict[str, Any]:
    """The parameters of a request.

    Raises:
        RequestValidationError: they are wrong.
    """
    query = request.query_params
    values = {name: query[name] for name in model.model_fields if name in query} | request.path_params
    try:
        return dict(model.model_validate(values))
    except ValidationError as wrong:
        raise RequestValidationError(wrong.errors()) from None
