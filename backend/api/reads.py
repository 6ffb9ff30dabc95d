"""Routes that are read by the hundred a second.

FastAPI looks through all routes twice, and at every parameter and every dependency of one anew for each request, which
costs more than most answers do. Here they are settled once, when the route is made, one model checks what a request
gives, and these routes are looked at before all others.
"""

from __future__ import annotations

import inspect
from collections.abc import Awaitable, Callable, Coroutine, Sequence
from typing import Any, get_type_hints

from fastapi import Request, Response
from fastapi.exceptions import RequestValidationError
from fastapi.params import Depends, Param
from fastapi.routing import APIRoute
from pydantic import BaseModel, ValidationError, create_model
from starlette.routing import BaseRoute, Match
from starlette.types import Receive, Scope, Send

from backend.api.parameters import check_names, known_to
from backend.auth.actor import AtLeast
from backend.context import of_request
from backend.paths import path_of

_ANSWER = "streamjoin.answer"
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
        model, names = create_model(f"Parameters of {endpoint.__name__}", **fields), tuple(fields)
        known = known_to(self)

        async def answer(request: Request) -> Response:
            # Who may not ask is told so, whatever else is wrong.
            given = {name: await find(request) for name, find in finds.items()}
            if request.scope["query_string"]:
                check_names(request.query_params.keys(), known)
            response = await endpoint(**given, **_checked(model, names, request))
            assert isinstance(response, Response)
            return response

        return answer


class ReadsFirst(BaseRoute):
    """Finds the reads among all requests, and answers them without what FastAPI does around a route.

    The routes themselves stay where they are: they describe the API, and answer what asks by other methods.

    Args:
        routes: none of which another route may come before.
    """

    def __init__(self, routes: Sequence[ReadRoute]) -> None:
        self._routes = [(route, route.get_route_handler()) for route in routes if "GET" in (route.methods or ())]

    def matches(self, scope: Scope) -> tuple[Match, Scope]:
        """Starlette's."""
        if scope["type"] == "http" and scope["method"] == "GET":
            path = path_of(scope)
            for route, answer in self._routes:
                if (found := route.path_regex.match(path)) is not None:
                    given = {
                        name: route.param_convertors[name].convert(text) for name, text in found.groupdict().items()
                    }
                    return Match.FULL, {
                        "path_params": given, "endpoint": route.endpoint, "route": route, _ANSWER: answer,
                    }  # fmt: skip
        return Match.NONE, {}

    async def handle(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Starlette's."""
        response = await scope[_ANSWER](Request(scope, receive, send))
        await response(scope, receive, send)


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


def _checked(model: type[BaseModel], names: Sequence[str], request: Request) -> dict[str, Any]:
    """The parameters of a request.

    Raises:
        RequestValidationError: they are wrong.
    """
    values: dict[str, Any] = request.path_params
    if len(names) > len(values):
        query = request.query_params
        values = {name: query[name] for name in names if name in query} | values
    try:
        return model.model_validate(values).__dict__
    except ValidationError as wrong:
        raise RequestValidationError(wrong.errors()) from None
