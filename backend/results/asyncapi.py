"""docs/asyncapi.json, made of the frames: `python -m backend.results.asyncapi` writes, `--check` compares it."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any, get_args

from pydantic import BaseModel
from pydantic.json_schema import models_json_schema

from backend.results import frames
from backend.version import VERSION

PATH = Path(__file__).resolve().parents[2] / "docs" / "asyncapi.json"
_TEMPLATE = "#/components/schemas/{model}"


def _models(union: Any) -> tuple[type[BaseModel], ...]:
    return get_args(get_args(union)[0])


def document() -> dict[str, Any]:
    """The websocket protocol as an AsyncAPI 3 document."""
    directions = {"receive": _models(frames.ClientFrame), "send": _models(frames.ServerFrame)}
    models = [model for both in directions.values() for model in both]
    _, schemas = models_json_schema([(model, "validation") for model in models], ref_template=_TEMPLATE)
    messages = {
        model.__name__: {
            "name": model.model_fields["type"].annotation.__args__[0],  # type: ignore[union-attr]
            "summary": (model.__doc__ or "").strip().splitlines()[0],
            "contentType": "application/json",
            "payload": {"$ref": _TEMPLATE.format(model=model.__name__)},
        }
        for model in models
    }
    codes = "\n".join(f"- {code}: {meaning}" for code, meaning in frames.CLOSE_CODES.items())
    return {
        "asyncapi": "3.0.0",
        "info": {
            "title": "StreamJoin: results as they are committed",
            "version": VERSION.split("+")[0],
            "description": f"Subprotocol `{frames.SUBPROTOCOL}`: it must be offered, and is echoed. Each frame is one "
            f"text with one JSON object. A websocket is closed with one of these codes:\n\n{codes}",
        },
        "servers": {"api": {"host": "127.0.0.1:8000", "protocol": "ws"}},
        "channels": {
            "ws": {
                "address": "/api/v1/ws",
                "messages": {name: {"$ref": f"#/components/messages/{name}"} for name in messages},
                "bindings": {"ws": {"method": "GET"}},
            }
        },
        "operations": {
            f"{action}{model.__name__}": {
                "action": action,
                "channel": {"$ref": "#/channels/ws"},
                "messages": [{"$ref": f"#/channels/ws/messages/{model.__name__}"}],
            }
            for action, both in directions.items()
            for model in both
        },
        "components": {"messages": messages, "schemas": schemas["$defs"]},
    }


def text() -> str:
    """The file's content."""
    return json.dumps(document(), indent=2, ensure_ascii=False) + "\n"


def main(arguments: list[str]) -> None:
    """Write the file, or only say whether it is as it should be."""
    if "--check" in arguments:
        if not PATH.exists() or PATH.read_text() != text():
            sys.exit("docs/asyncapi.json is not what the frames say; run python -m backend.results.asyncapi")
    else:
        PATH.write_text(text())


if __name__ == "__main__":
    main(sys.argv[1:])
