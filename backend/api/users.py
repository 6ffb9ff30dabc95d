"""Users: who may use the platform, and as what."""

from __future__ import annotations

from typing import Annotated, Literal

from fastapi import APIRouter, Request, Response
from pydantic import AfterValidator, BaseModel, Field
from sqlalchemy import select
from sqlalchemy.exc import IntegrityError
from sqlalchemy.orm import Session

from backend.api.shapes import Body, Limit, Page, StartingAfter, iso, link_next, page_of
from backend.auth.actor import Actor, Admin, Viewer
from backend.auth.limits import address_of, limits_of
from backend.auth.passwords import check_password, hash_password, matches
from backend.auth.sessions import end_sessions_of, open_session, set_cookie
from backend.catalog.events import record
from backend.catalog.ids import new_id, now_us
from backend.catalog.models import User
from backend.context import InContext
from backend.idempotency import done_once
from backend.lookup import by_id_or_name
from backend.problems import Place, Problem

router = APIRouter(prefix="/api/v1/users", tags=["users"])

Role = Literal["viewer", "operator", "admin"]


def _not_me(name: str) -> str:
    if name == "me":
        raise ValueError('"me" is whoever asks; take another name')
    return name


Name = Annotated[
    str,
    Field(
        pattern=r"^[a-z0-9][a-z0-9._@-]{0,62}$",
        description="Small letters, digits and . _ @ -, 63 at most; the first is a letter or a digit.",
    ),
    AfterValidator(_not_me),
]
Password = Annotated[str, Field(max_length=1000, json_schema_extra={"format": "password", "writeOnly": True})]


class UserIn(Body):
    """A user to make."""

    name: Name
    role: Role
    password: Password


class UserChange(Body):
    """What is to change; a new password ends all logins of the user, and so does disabling."""

    role: Role | None = None
    disabled: bool | None = None
    password: Password | None = None


class PasswordChange(Body):
    """One's own new password, with the one before."""

    old: Password
    new: Password


class UserOut(BaseModel):
    """A user."""

    id: str
    name: str
    role: Role
    disabled: bool
    created_at: str | None


class Me(BaseModel):
    """Who asks. `id` is null where auth is off; `role` is the key's where one was used that has less."""

    id: str | None
    name: str
    role: Role
    key_id: str | None


@router.get("/me")
def get_me(actor: Viewer) -> Me:
    """Who is logged in, or whose key this is."""
    return shape_me(actor)


@router.put("/me/password", status_code=204)
def change_own_password(
    context: InContext, actor: Viewer, request: Request, response: Response, body: PasswordChange
) -> None:
    """Change one's own password. All logins end, and the API keys that they made.

    A browser that was logged in is given another cookie, and stays so.
    """
    if actor.id is None:
        raise Problem("conflict.auth_is_off", "auth is off, so nobody has a password; set STREAMJOIN_AUTH=on")
    check_password(body.new, actor.name, "/new")
    address = address_of(request.scope.get("client"))
    limits_of(context).check_login(actor.name, address)
    with context.catalog.read() as session:
        before = _find(session, actor.id).password
    if not matches(body.old, before):
        detail = "the old password is wrong"
        raise Problem("invalid.wrong_password", detail, errors=[Place(pointer="/old", detail=detail)])
    limits_of(context).forgive_login(actor.name, address)
    after = hash_password(body.new)
    with context.catalog.begin() as session:
        user = _find(session, actor.id)
        if user.password != before:
            raise Problem("conflict.password_changed", "the password was changed meanwhile; log in with the new one")
        user.password = after
        # This login too: a copy of its cookie may be why the password is changed. Whoever came with a key has none.
        end_sessions_of(session, actor.id)
        token = None
        if actor.key_id is None:
            token = open_session(session, actor.id, context.settings.session_hours, None)
        record(session, "user.password_changed", f"{actor.name} changed their password", actor_id=actor.id)
    if token is not None:
        set_cookie(context.settings, request, response, token)


@router.get("")
def list_users(
    context: InContext, actor: Admin, request: Request, response: Response, limit: Limit = 50,
    starting_after: StartingAfter = None,
) -> Page[UserOut]:  # fmt: skip
    """All users, newest first."""
    with context.catalog.read() as session:
        page = page_of(session, select(User), User.id, limit, starting_after, _shape)
    link_next(request, response, page.has_more, [user.id for user in page.data])
    return page


@router.post("", status_code=201)
@done_once
def create_user(context: InContext, actor: Admin, body: UserIn, response: Response) -> UserOut:
    """Make a user, who can log in at once."""
    check_password(body.password, body.name)
    user = User(
        id=new_id("usr"), name=body.name, role=body.role, password=hash_password(body.password), disabled=False,
        created_at_us=now_us(),
    )  # fmt: skip
    try:
        with context.catalog.begin() as session:
            session.add(user)
            session.flush()
            record(session, "user.created", f"user {user.name} was made, as {user.role}", actor_id=actor.id,
                   data={"user_id": user.id})  # fmt: skip
    except IntegrityError:
        raise Problem("conflict.name_taken", f'there is a user "{body.name}" already; take another name') from None
    response.headers["Location"] = f"/api/v1/users/{user.id}"
    return _shape(user)


@router.get("/{id}")
def get_user(context: InContext, actor: Admin, id: str) -> UserOut:
    """One user, by id or name."""
    with context.catalog.read() as session:
        return _shape(_find(session, id))


@router.patch("/{id}")
def change_user(context: InContext, actor: Admin, id: str, body: UserChange) -> UserOut:
    """Change a user's role, disable or enable them, or give them a new password."""
    with context.catalog.read() as session:
        seen = _find(session, id)
    if body.password is not None:
        if seen.id == actor.id:
            raise Problem(
                "forbidden.own_password",
                "your own password is changed with the old one, by PUT /api/v1/users/me/password",
            )
        check_password(body.password, seen.name)
    hashed = hash_password(body.password) if body.password is not None else None
    with context.catalog.begin() as session:
        admins = _enabled_admins(session)
        user = _find(session, seen.id)
        _change(user, body, hashed)
        if admins == [user.id] and (user.disabled or user.role != "admin"):
            raise _last_admin(user)
        if user.disabled or hashed is not None:
            end_sessions_of(session, user.id)
        changed = sorted(body.model_dump(exclude_none=True))
        record(session, "user.changed", f"user {user.name} was changed: {', '.join(changed) or 'nothing'}",
               actor_id=actor.id, data={"user_id": user.id, "role": user.role, "disabled": user.disabled})  # fmt: skip
    return _shape(user)


@router.delete("/{id}", status_code=204)
def delete_user(context: InContext, actor: Admin, id: str) -> None:
    """Remove a user with their logins and keys. What they own stays, and belongs to nobody."""
    with context.catalog.begin() as session:
        admins = _enabled_admins(session)
        user = _find(session, id)
        if admins == [user.id]:
            raise _last_admin(user)
        session.delete(user)
        record(session, "user.deleted", f"user {user.name} was removed", actor_id=actor.id, data={"user_id": user.id})


def shape_me(actor: Actor) -> Me:
    """An actor as clients see it."""
    return Me.model_validate({"id": actor.id, "name": actor.name, "role": actor.role, "key_id": actor.key_id})


def _find(session: Session, id_or_name: str) -> User:
    return by_id_or_name(session, User, id_or_name, "user")


def _change(user: User, body: UserChange, hashed: str | None) -> None:
    if body.role is not None:
        user.role = body.role
    if body.disabled is not None:
        user.disabled = body.disabled
    if hashed is not None:
        user.password = hashed


def _enabled_admins(session: Session) -> list[str]:
    # Locked, in one order for all: two admins who remove each other at once must not both succeed.
    rows = select(User.id).where(User.role == "admin", User.disabled.is_(False)).order_by(User.id).with_for_update()
    return list(session.scalars(rows))


def _last_admin(user: User) -> Problem:
    return Problem("conflict.last_admin", f"{user.name} is the last admin who can log in; make another one first")


def _shape(user: User) -> UserOut:
    return UserOut.model_validate(
        {"id": user.id, "name": user.name, "role": user.role, "disabled": user.disabled,
         "created_at": iso(user.created_at_us)}
    )  # fmt: skip
