"""Which web pages may make a browser ask us for something.

A browser sends cookies along whatever page asks, and lets a page that renamed its own host to 127.0.0.1 (DNS rebinding)
talk to this machine. Both are told by headers that pages cannot choose: Origin, Sec-Fetch-Site and Host.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from urllib.parse import urlsplit

from backend.auth.keys import bearer_of
from backend.problems import Problem
from backend.settings import Settings
from streamjoin.loopback import is_loopback

KNOWN_HOSTS = 64
"""Most clients name one of few hosts; so many are not looked at anew with every request."""
SAFE_METHODS = frozenset({"GET", "HEAD", "OPTIONS"})
_PORTS = {"http": 80, "https": 443}


def check_host(settings: Settings, host: str | None) -> None:
    """Where auth is off, a request must be addressed to this machine by a name that no web page can own.

    Args:
        host: the Host header.
    Raises:
        Problem: it is addressed to another name.
    """
    if settings.auth == "on":
        return
    if not _is_ours(host or "", settings.allowed_origins):
        raise Problem(
            "forbidden.loopback_only",
            "auth is off, so the API answers to 127.0.0.1 and localhost only; "
            "set STREAMJOIN_AUTH=on, or name the page's origin in STREAMJOIN_ALLOWED_ORIGINS",
        )


def check_request(settings: Settings, method: str, headers: Mapping[str, str], *, has_cookie: bool) -> None:
    """A request that changes something must not come from somebody else's page.

    Args:
        has_cookie: a session cookie came with it.
    Raises:
        Problem: it does, or it carries a cookie and does not say from where.
    """
    if method in SAFE_METHODS or bearer_of(headers) is not None:
        return
    origin = headers.get("origin")
    if origin is not None:
        if not is_allowed_origin(settings, origin, headers.get("host")):
            raise _foreign(origin)
    elif (site := headers.get("sec-fetch-site", "same-origin")) not in ("same-origin", "none"):
        raise _foreign(f"a {site} page")
    elif has_cookie and settings.auth == "on" and "sec-fetch-site" not in headers:
        raise Problem(
            "forbidden.origin_missing",
            "a request with a session cookie must have an Origin header; programs use API keys instead",
        )


def check_websocket(settings: Settings, headers: Mapping[str, str]) -> None:
    """A websocket must not come from somebody else's page; programs send no Origin.

    Raises:
        Problem: it does.
    """
    origin = headers.get("origin")
    if origin is not None and not is_allowed_origin(settings, origin, headers.get("host")):
        raise _foreign(origin)


def is_allowed_origin(settings: Settings, origin: str, host: str | None) -> bool:
    """Whether a page is our own, by the host it came from, or one of `allowed_origins`."""
    scheme = origin.partition("://")[0].lower()
    page = _split(origin)
    if scheme not in _PORTS or page[0] is None:  # also "null", which sandboxed and local pages send
        return False
    own = _split(f"{scheme}://{host or ''}")
    listed = {(allowed.partition("://")[0].lower(), _split(allowed)) for allowed in settings.allowed_origins}
    return page == own or (scheme, page) in listed


@lru_cache(KNOWN_HOSTS)
def _is_ours(host: str, allowed_origins: tuple[str, ...]) -> bool:
    name = _split(f"//{host}")[0]
    return name is not None and (is_loopback(name) or name in {_split(origin)[0] for origin in allowed_origins})


def _split(url: str) -> tuple[str | None, int | None]:
    try:
        parts = urlsplit(url)
        return parts.hostname or None, parts.port or _PORTS.get(parts.scheme)
    except ValueError:
        return None, None


def _foreign(origin: str) -> Problem:
    return Problem(
        "forbidden.foreign_page",
        f"{origin[:200]} may not do this here; if it is this platform's own page, behind a proxy that changes the "
        "Host header, name it in STREAMJOIN_ALLOWED_ORIGINS",
    )
