"""Passwords: what is one, and argon2 hashes of them.

Hashing takes tens of milliseconds and 19 MiB on purpose, so only few of them run at a time: many logins at once wait
for each other, and neither memory nor the other requests pay for them.
"""

from __future__ import annotations

import os
import threading
import unicodedata
from collections.abc import Iterator
from contextlib import contextmanager
from functools import lru_cache

from pwdlib import PasswordHash
from pwdlib.hashers.argon2 import Argon2Hasher

from backend.problems import Place, Problem

LENGTH_MIN = 8
LENGTH_MAX = 200
WAIT_S_MAX = 5.0

# The smallest of the parameter sets that OWASP's password storage advice counts as equally strong; an embedded
# platform should not need 64 MiB for a login.
_hasher = PasswordHash((Argon2Hasher(time_cost=2, memory_cost=19 * 1024, parallelism=1),))
_slots = threading.BoundedSemaphore(max(2, os.cpu_count() or 1))


def check_password(password: str, name: str, pointer: str = "/password") -> None:
    """Refuse what is no password: too short, too long, or the user's own name.

    Args:
        name: of the user.
        pointer: where in the request it stands.
    Raises:
        Problem: says what would be one.
    """
    detail = None
    if not LENGTH_MIN <= len(password) <= LENGTH_MAX:
        detail = f"a password has {LENGTH_MIN} to {LENGTH_MAX} characters"
    elif password.casefold() == name.casefold():
        detail = "a password is not the name of its user"
    if detail is not None:
        raise Problem("invalid.weak_password", detail, errors=[Place(pointer=pointer, detail=detail)])


def hash_password(password: str) -> str:
    """What the catalog keeps of a password.

    Raises:
        Problem: too many are being hashed.
    """
    with _slot():
        return _hasher.hash(_normal(password))


def matches(password: str, hashed: str | None) -> bool:
    """Whether it is the password; as slow where there is no user or no password, so that time tells no names.

    Raises:
        Problem: too many are being hashed.
    """
    with _slot():
        same = _hasher.verify(_normal(password), hashed or _nobodys())
    return same and hashed is not None


def is_outdated(hashed: str) -> bool:
    """Whether the hash was made with other parameters than today's."""
    return _hasher.current_hasher.check_needs_rehash(hashed)


@lru_cache(maxsize=1)
def _nobodys() -> str:
    return _hasher.hash(os.urandom(16).hex())


def _normal(password: str) -> str:
    # Keyboards differ in how they compose letters with accents.
    return unicodedata.normalize("NFKC", password)


@contextmanager
def _slot() -> Iterator[None]:
    if not _slots.acquire(timeout=WAIT_S_MAX):
        raise Problem(
            "unavailable.too_many_passwords", "too many people log in just now; try again", headers={"Retry-After": "2"}
        )
    try:
        yield
    finally:
        _slots.release()
