"""API keys: how programs show whose they are."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Query, Request, Response
from pydantic import AfterValidator, BaseModel, Field
from sqlalchemy import func, or_, select
from sqlalchemy.orm import Session

from backend.api.shapes import Body, Limit, Page, StartingAfter, iso, link_next, page_of
from backend.api.users import Role
from backend.auth.actor import Actor, Viewer, unauthenticated
from backend.auth.keys import make_key, revoke
from backend.auth.sessions import COOKIE
from backend.catalog.ended_keys import ended_at_us
from backend.catalog.events import record
from backend.catalog.ids import now_us
from backend.catalog.models import ApiKey, User
from backend.catalog.models import Session as Login
from backend.context import InContext
from backend.problems import Place, Problem

router = APIRouter(prefix="/api/v1/api-keys", tags=["api-keys"])
KEYS_MAX = 100
ROWS_MAX = 2_000
"""How many keys of one user are kept, including those that ended."""
DAY_US = 86_400_000_000


def _printable(name: str) -> str:
    # Also keeps out what turns the direction of writing, which would let one key look like another.
    if not name.strip() or not name.isprintable():
        raise ValueError("a name has 1 to 100 characters that can be printed")
    return name.strip()


class KeyIn(Body):
    """A key to make."""

    name: Annotated[str, Field(min_length=1, max_length=100), AfterValidator(_printable)]
    role: Role = "viewer"
    days: float | None = Field(
        default=None, gt=0, description="How long it holds; as long as STREAMJOIN_API_KEY_DAYS says unless given."
    )
    ends_with_login: bool = Field(
        default=True,
        description="Whether a key that a login makes ends with it: when it logs out, or expires. False is for "
        "programs that go on without anybody logged in. Says nothing of a key that a key makes.",
    )


class KeyOut(BaseModel):
    """A key, without what opens something. `start` are its first letters.

    `expires_at` is null for keys of versions that made keys without an end, `made_by_key` the key that made it, and
    `ends_with_login` whether it ends with the login that made it.
    """

    id: str
    name: str
    start: str
    role: Role
    user_id: str
    created_at: str | None
    used_at: str | None
    revoked_at: str | None
    expires_at: str | None
    made_by_key: str | None
    ends_with_login: bool


class KeyCreated(KeyOut):
    """A new key; `key` is shown this once and kept nowhere."""

    key: str


@router.get("")
def list_api_keys(
    context: InContext, actor: Viewer, request: Request, response: Response, limit: Limit = 50,
    starting_after: StartingAfter = None,
    all: Annotated[bool, Query(description="Those of all users; for admins.")] = False,
) -> Page[KeyOut]:  # fmt: skip
    """One's own keys, newest first; also those that were revoked."""
    if all and actor.role != "admin":
        raise Problem(
            "forbidden.keys_of_others", "only admins see the keys of others; ask without all=true for your own"
        )
    rows = select(ApiKey) if all else select(ApiKey).where(ApiKey.user_id == actor.id)
    with context.catalog.read() as session:
        page = page_of(session, rows, ApiKey.id, limit, starting_after, _shape)
    link_next(request, response, page.has_more, [key.id for key in page.data])
    return page


@router.post("", status_code=201)
def create_api_key(context: InContext, actor: Viewer, request: Request, body: KeyIn) -> KeyCreated:
    """Make a key for oneself, with one's own role or less. The answer is the only place where it can be read.

    A key that a key makes ends with it. One that a login makes ends with the login, unless it is asked to go on
    (`ends_with_login: false`), and always when the password is changed.
    """
    if actor.id is None:
        raise Problem("conflict.auth_is_off", "auth is off, so nobody needs a key; set STREAMJOIN_AUTH=on")
    if not actor.is_at_least(body.role):
        detail = f"a key has at most the role of who makes it, which is {actor.role}"
        raise Problem("forbidden.key_role_too_high", detail, errors=[Place(pointer="/role", detail=detail)])
    days_max = context.settings.api_key_days
    if body.days is not None and body.days > days_max:
        detail = f"a key holds for {days_max:g} days at most (STREAMJOIN_API_KEY_DAYS)"
        raise Problem("invalid.key_too_long", f"/days: {detail}", params={"limit": days_max},
                      errors=[Place(pointer="/days", detail=detail)])  # fmt: skip
    expires_at_us = now_us() + round((body.days or days_max) * DAY_US)
    token = None if actor.key_id else request.cookies.get(COOKIE)
    row, key = make_key(actor.id, body.name, body.role, expires_at_us, by_key=actor.key_id, by_session=token,
                        ends_with_login=body.ends_with_login)  # fmt: skip
    with context.catalog.begin() as session:
        # Locks the user, so that many at once cannot pass the count together.
        if session.scalar(select(User.id).where(User.id == actor.id).with_for_update()) is None:
            raise Problem("conflict.user_removed", "you were removed meanwhile; ask an admin")
        _cap(session, row)
        _check_room(session, actor, context.settings.audit_days)
        session.add(row)
        record(session, "api_key.created", f"{actor.name} made the key {row.start}... as {row.role}", actor_id=actor.id,
               data={"key_id": row.id})  # fmt: skip
    return KeyCreated(**_shape(row).model_dump(), key=key)


@router.delete("/{id}", status_code=204)
def revoke_api_key(context: InContext, actor: Viewer, id: str) -> None:
    """Revoke a key: from now on it opens nothing, and neither do the keys that it made. Again changes nothing."""
    with context.catalog.begin() as session:
        row = session.get(ApiKey, id)
        # Of others' keys not even whether they exist.
        if row is None or (row.user_id != actor.id and actor.role != "admin"):
            raise Problem("not_found.no_key", f'you have no key "{id[:100]}"')
        # A key that leaked must not take away the stronger ones; people may always revoke their own.
        if actor.key_id is not None and not actor.is_at_least(row.role):
            raise Problem(
                "forbidden.key_role_too_low", f"a key with the role {actor.role} does not revoke one with {row.role}"
            )
        if row.revoked_at_us is None:
            ended = revoke(session, row)
            more = f", and {len(ended) - 1} that it made" if len(ended) > 1 else ""
            record(session, "api_key.revoked", f"{actor.name} revoked the key {row.start}...{more}", actor_id=actor.id,
                   data={"key_id": row.id, "keys": len(ended)})  # fmt: skip


def _check_room(session: Session, actor: Actor, kept_days: float) -> None:
    """Refuse another key to a user who has as many as allowed. Ended keys count as long as they are kept."""
    own = ApiKey.user_id == actor.id
    holds = or_(ApiKey.expires_at_us.is_(None), ApiKey.expires_at_us > now_us())
    live = select(func.count()).where(own, ApiKey.revoked_at_us.is_(None), holds)
    if session.scalars(live).one() >= KEYS_MAX:
        raise Problem("conflict.too_many_keys", f"you have {KEYS_MAX} keys, which is the limit; revoke one first")
    # A leaked key must not use up all the keys of the user it belongs to.
    limit = ROWS_MAX if actor.key_id is None else ROWS_MAX // 2
    kept, first_us = session.execute(select(func.count(), func.min(ended_at_us())).where(own)).one()
    if kept >= limit and first_us is not None:
        raise Problem(
            "conflict.too_many_keys",
            f"you have {limit:,} keys with those that ended, which is the limit; the first of these is forgotten at "
            f"{iso(first_us + round(kept_days * DAY_US))}; until then use a key that you have, and for longer",
        )


def _cap(session: Session, row: ApiKey) -> None:
    """What makes a key must hold still, and a key that ends with it holds no longer."""
    maker: ApiKey | Login | None
    if row.made_by_key is not None:
        maker = session.get(ApiKey, row.made_by_key, with_for_update=True)
    else:
        maker = session.get(Login, row.made_by_session, with_for_update=True)
    if maker is None or (isinstance(maker, ApiKey) and maker.revoked_at_us is not None):
        raise unauthenticated()
    ends_with_it = isinstance(maker, ApiKey) or row.ends_with_login
    if ends_with_it and maker.expires_at_us is not None and row.expires_at_us is not None:
        row.expires_at_us = min(row.expires_at_us, maker.expires_at_us)


def _shape(row: ApiKey) -> KeyOut:
    return KeyOut.model_validate(
        {"id": row.id, "name": row.name, "start": row.start, "role": row.role, "user_id": row.user_id,
         "created_at": iso(row.created_at_us), "used_at": iso(row.used_at_us), "revoked_at": iso(row.revoked_at_us),
         "expires_at": iso(row.expires_at_us), "made_by_key": row.made_by_key,
         "ends_with_login": row.ends_with_login}
    )  # fmt: skip
