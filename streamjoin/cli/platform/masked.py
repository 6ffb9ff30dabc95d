"""What may be shown of settings and texts: everything but secrets."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable
from typing import Any
from urllib.parse import parse_qsl, urlsplit

MASK = "********"
_PASSWORD = re.compile(r"(?<=//)([^\s/@:]*):([^\s@]+)@")
_TOKEN = re.compile(r"\bsj_[A-Za-z0-9_-]{20,}|(?<=Bearer )\S+|(?<=with the password )\S+")
"""The last one is what logs of earlier versions say of the first admin."""
_FIELD = re.compile(
    r"""(["']?\b[\w.-]*(?:password|passwd|secret|token|(?:api|access|account|secret)_?key|jaas\.config)["']?\s*[=:]\s*)("[^"]*"|'[^']*'|[^\s,;}]+)""",
    re.IGNORECASE,
)


_SECRET_NAME = re.compile(r"password|passwd|secret|token|key|credential|signature", re.IGNORECASE)


def masked_settings(settings: Any) -> list[dict[str, Any]]:
    """Each setting: what it is called in the environment, its value, and where that comes from."""
    rows = []
    for name, declared in type(settings).model_fields.items():
        variable = f"STREAMJOIN_{name.upper()}"
        value = getattr(settings, name)
        source = (
            "file" if os.environ.get(f"{variable}_FILE") else "environment" if variable in os.environ else "default"
        )
        rows.append({"setting": variable, "value": _shown(value, may_tell=not declared.repr), "source": source})
    return rows


def secrets_of(settings: Any) -> list[str]:
    """The secrets themselves, to keep them out of texts."""
    found = []
    for name in type(settings).model_fields:
        value = getattr(settings, name)
        if hasattr(value, "get_secret_value"):
            found.append(value.get_secret_value())
        elif isinstance(value, str) and "://" in value:
            parts = urlsplit(value)
            found.append(parts.password or "")
            found += [told for option, told in parse_qsl(parts.query) if _SECRET_NAME.search(option)]
    return [secret for secret in found if secret]


def masked_text(text: str, secrets: Iterable[str] = ()) -> str:
    """A text without given secrets, and without what looks like one: passwords, tokens, credentials in addresses."""
    for secret in sorted(secrets, key=len, reverse=True):
        text = text.replace(secret, MASK)
    text = _PASSWORD.sub(rf"\1:{MASK}@", text)
    text = _TOKEN.sub(MASK, text)
    return _FIELD.sub(rf'\1"{MASK}"', text)


def _shown(value: Any, may_tell: bool) -> Any:
    """A setting as people may see it.

    Args:
        may_tell: it is an address that may have a secret in it, also among its options.
    """
    if hasattr(value, "get_secret_value"):
        return MASK
    if isinstance(value, str) and may_tell:
        return _shown_address(value)
    if isinstance(value, str):
        return _PASSWORD.sub(rf"\1:{MASK}@", value)
    if isinstance(value, tuple):
        return [str(part) for part in value]
    return value if value is None or isinstance(value, int | float | bool) else str(value)


def _shown_address(address: str) -> str:
    """An address without its password, and with names of its options only: each kind of place has others that tell."""
    place, mark, options = address.partition("?")
    if "@" in options:  # a password may have a ? in it, and then it is not known where it ends
        return MASK
    scheme, _, rest = place.rpartition("://")
    who, at, where = rest.rpartition("@")
    name, colon, password = who.partition(":")
    shown = f"{scheme}://{name}{colon}{MASK if password else ''}{at}{where}" if scheme else place
    return shown + mark + "&".join(f"{option.partition('=')[0]}={MASK}" for option in options.split("&") if option)
