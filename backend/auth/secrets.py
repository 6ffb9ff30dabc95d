"""Connection secrets: encrypted in the catalog with a key that must be given.

A sealed mapping is a mark, eight bytes that tell which key sealed it, a nonce, and AES-256-GCM of its JSON.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Mapping
from functools import lru_cache
from typing import Any

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from cryptography.hazmat.primitives.kdf.scrypt import Scrypt

from backend.problems import Problem
from backend.settings import Settings

SECRET_KEY_LENGTH_MIN = 16
BYTES_MAX = 64 << 10
_MARK = b"sj1\0"
_KEY_ID = 8
_NONCE = 12
_HEAD = len(_MARK) + _KEY_ID


class WrongKeyError(Problem):
    """Secrets were sealed with another key, or were damaged."""

    def __init__(self, detail: str) -> None:
        super().__init__("conflict", detail)


def seal(settings: Settings, mapping: Mapping[str, Any]) -> bytes:
    """Encrypt secrets for the catalog.

    Raises:
        Problem: there is no secret key, or they are too large.
    """
    key = _key(settings)
    clear = json.dumps(dict(mapping)).encode()
    if len(clear) > BYTES_MAX:
        raise Problem("invalid.secrets_too_large", f"the secrets have {len(clear):,} bytes; {BYTES_MAX:,} is the limit")
    head = _MARK + _id_of(key)
    nonce = os.urandom(_NONCE)
    return head + nonce + AESGCM(key).encrypt(nonce, clear, head)


def open_sealed(settings: Settings, sealed: bytes) -> dict[str, Any]:
    """Decrypt secrets of the catalog.

    Raises:
        WrongKeyError: another key sealed them, or they were changed since.
        Problem: there is no secret key.
    """
    key = _key(settings)
    head, nonce, hidden = sealed[:_HEAD], sealed[_HEAD : _HEAD + _NONCE], sealed[_HEAD + _NONCE :]
    if head == _MARK + _id_of(key):
        try:
            found = json.loads(AESGCM(key).decrypt(nonce, hidden, head))
        except (InvalidTag, ValueError):
            raise WrongKeyError("the secrets in the catalog are damaged; give them again") from None
        assert isinstance(found, dict)
        return found
    if len(sealed) < _HEAD or not sealed.startswith(_MARK):
        raise WrongKeyError("the secrets in the catalog are damaged; give them again")
    raise WrongKeyError(
        "these secrets were encrypted with another key; set STREAMJOIN_SECRET_KEY to the former one, or give the "
        "secrets again"
    )


def is_sealed_with(settings: Settings, sealed: bytes) -> bool:
    """Whether the key of the settings sealed it.

    Raises:
        Problem: there is no secret key.
    """
    return sealed.startswith(_MARK + _id_of(_key(settings)))


def _key(settings: Settings) -> bytes:
    given = settings.secret_key.get_secret_value() if settings.secret_key is not None else ""
    if len(given) < SECRET_KEY_LENGTH_MIN:
        name = "STREAMJOIN_SECRET_KEY"
        what = f"the platform's {name} is too short" if given else f"the platform has no {name}"
        raise Problem(
            "invalid.no_secret_key",
            f"secrets cannot be kept, because {what}; whoever runs it can set that, or {name}_FILE, to "
            f"at least {SECRET_KEY_LENGTH_MIN} random characters, the same for all its processes, and restart it",
        )
    return _derived(given)


@lru_cache(maxsize=4)
def _derived(secret: str) -> bytes:
    # The salt is fixed: every process must find the same key, and the secret is the platform's own, not a password
    # that others share.
    return Scrypt(salt=b"streamjoin connection secrets", length=32, n=2**14, r=8, p=1).derive(secret.encode())


def _id_of(key: bytes) -> bytes:
    return hashlib.sha256(b"id of " + key).digest()[:_KEY_ID]
