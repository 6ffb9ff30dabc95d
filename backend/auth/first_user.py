"""The first admin, so that somebody can log in to a new platform."""

from __future__ import annotations

import os
import secrets
from pathlib import Path

from sqlalchemy import select
from sqlalchemy.exc import IntegrityError

from backend.auth.first_password import FILE, NAME
from backend.auth.passwords import check_password, hash_password, matches
from backend.catalog.database import Catalog
from backend.catalog.events import record
from backend.catalog.ids import new_id, now_us
from backend.catalog.models import User
from backend.problems import Problem
from backend.settings import Settings
from streamjoin.errors import InputError


def ensure_admin(settings: Settings, catalog: Catalog) -> str | None:
    """Make the user `admin` where auth is on and there is no admin.

    Its password is `admin_password`, or a random one that is also written to `data`/admin-password, which only its
    owner reads. Any number of processes may do this at once: there is one admin and one password afterwards.

    Returns:
        The random password; None where nothing was made, or the password was given. What may be said of it, and where,
        tells `first_password.welcome`.
    Raises:
        InputError: the given password is none, or the file cannot be written.
    """
    if settings.auth == "off" or _has_admin(catalog):
        return None
    given = settings.admin_password
    file = settings.data / FILE
    password = given.get_secret_value() if given is not None else _password_of(file)
    try:
        check_password(password, NAME)
    except Problem as wrong:
        place = "STREAMJOIN_ADMIN_PASSWORD" if given is not None else str(file)
        raise InputError(f"{place}: {wrong.detail}") from None
    hashed = hash_password(password)
    try:
        with catalog.begin() as session:
            session.add(
                User(id=new_id("usr"), name=NAME, role="admin", password=hashed, disabled=False,
                     created_at_us=now_us())
            )  # fmt: skip
            session.flush()
            record(session, "user.created", f"{NAME} was made, as there was no admin")
    except IntegrityError:
        if not _has_admin(catalog):
            raise InputError(f'there is no admin, and "{NAME}" is the name of another user; rename that one') from None
        if given is None:
            _remove_unless_right(catalog, file, password)
        return None
    return password if given is None else None


def _has_admin(catalog: Catalog) -> bool:
    with catalog.read() as session:
        return session.scalar(select(User.id).where(User.role == "admin").limit(1)) is not None


def _password_of(file: Path) -> str:
    """What the file says; written first, and whole, so that processes that start together agree on it."""
    draft = file.with_name(f".{FILE}.{os.getpid()}.{secrets.token_hex(4)}")
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        descriptor = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        with os.fdopen(descriptor, "w") as text:
            text.write(secrets.token_urlsafe(18) + "\n")
            text.flush()
            os.fsync(descriptor)
        try:
            os.link(draft, file)
        except FileExistsError:
            pass
        finally:
            draft.unlink()
        return file.read_text().strip()
    except OSError as cause:
        raise InputError(
            f"the admin's password cannot be kept in {file}: {cause.strerror}; set STREAMJOIN_ADMIN_PASSWORD"
        ) from None


def _remove_unless_right(catalog: Catalog, file: Path, password: str) -> None:
    # Another machine, with a data folder of its own, was first: this file would be a lie.
    with catalog.read() as session:
        hashed = session.scalar(select(User.password).where(User.name == NAME))
    if not matches(password, hashed):
        file.unlink(missing_ok=True)
