"""The dashboard's files: what is asked for and is no route of the API.

/static/...      names with a hash in them: kept by browsers for a year
other files      icons and the like: asked for again each time
other addresses  index.html, whose script shows the page; it gets a nonce of its own for each response
"""

from __future__ import annotations

import html
import re
import secrets
from pathlib import Path
from typing import Final

from anyio.to_thread import run_sync
from fastapi import FastAPI
from starlette.datastructures import Headers, MutableHeaders
from starlette.middleware.gzip import GZipMiddleware
from starlette.responses import HTMLResponse, Response
from starlette.staticfiles import StaticFiles
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from backend.paths import path_of
from backend.settings import Settings

BUILT: Final = Path(__file__).resolve().parents[1] / "frontend" / "build"
"""Where the build puts it."""
NONCE: Final = "__CSP_NONCE__"
"""What index.html has in place of a nonce."""
ROOT: Final = re.compile(r'<base href="/" ?/?>')
"""What index.html has in place of the path that the platform is reached under."""
KEPT: Final = "public, max-age=31536000, immutable"
ASKED_AGAIN: Final = "no-cache"
GZIP_BYTES_MIN: Final = 1024

_ABSENT = (
    "<!doctype html><html lang=en><title>StreamJoin</title><h1>The dashboard has not been built</h1>"
    "<p>Build it with <code>make frontend</code> and load this page again. A build "
    "in another folder is named in <code>STREAMJOIN_FRONTEND</code>.</p>"
    "<p>The API works without it: see <a href=api/v1/openapi.json>its description</a>.</p></html>"
)


def install(app: FastAPI, settings: Settings) -> None:
    """Let the dashboard answer what no route does; it may be built while the API runs."""
    app.router.default = Dashboard(settings.frontend or BUILT, app.router.not_found)


class Dashboard:
    """Answers requests for pages and files.

    Args:
        folder: a build.
        otherwise: answers what is neither.
    """

    def __init__(self, folder: Path, otherwise: ASGIApp) -> None:
        self.folder = folder
        self.otherwise = otherwise
        self.files = GZipMiddleware(StaticFiles(directory=folder, check_dir=False), minimum_size=GZIP_BYTES_MIN)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """ASGI's."""
        if scope["type"] != "http" or scope["method"] not in ("GET", "HEAD"):
            await self.otherwise(scope, receive, send)
            return
        path = path_of(scope)
        if await run_sync(self._has_file, path):
            await self.files(scope, receive, _with_caching(send, KEPT if path.startswith("/static/") else ASKED_AGAIN))
        elif path == "/" or ("text/html" in Headers(scope=scope).get("accept", "") and is_page(path)):
            page = await run_sync(self._page, scope.get("root_path", "").rstrip("/"))
            await page(scope, receive, send)
        else:
            await self.otherwise(scope, receive, send)

    def _has_file(self, path: str) -> bool:
        # The answer must not tell whether a file outside the folder exists.
        if path in ("/", "/index.html") or ".." in path.split("/"):
            return False
        try:
            return (self.folder / path.lstrip("/")).is_file()
        except (OSError, ValueError):  # such as a name that is too long or has a zero byte
            return False

    def _page(self, root_path: str) -> Response:
        try:
            text = (self.folder / "index.html").read_text(encoding="utf-8")
        except OSError:
            return HTMLResponse(_ABSENT, 404, {"Content-Security-Policy": "default-src 'none'"})
        nonce = secrets.token_urlsafe(18)
        base = f'<base href="{html.escape(root_path)}/">'
        return HTMLResponse(
            ROOT.sub(base, text.replace(NONCE, nonce)),
            headers={"Content-Security-Policy": content_security_policy(nonce), "Cache-Control": "no-store"},
        )


def is_page(path: str) -> bool:
    """Whether a path may be a page of the dashboard: not below /api or /static, and no dot in its last part.

    No regular expression: anybody may ask for a path of 64 KiB, and it is looked at in the event loop.
    """
    return path.split("/", 2)[:2] not in (["", "api"], ["", "static"]) and "." not in path.rpartition("/")[2]


def content_security_policy(nonce: str) -> str:
    """What a page may load: from here only, and styles of its own making only with the nonce."""
    return (
        f"default-src 'none'; script-src 'self'; style-src 'self' 'nonce-{nonce}'; img-src 'self' data:; "
        "font-src 'self'; connect-src 'self'; worker-src 'self'; manifest-src 'self'; base-uri 'self'; "
        "form-action 'self'; frame-ancestors 'none'"
    )


def _with_caching(send: Send, value: str) -> Send:
    async def marked(message: Message) -> None:
        if message["type"] == "http.response.start":
            MutableHeaders(scope=message)["Cache-Control"] = value
        await send(message)

    return marked
