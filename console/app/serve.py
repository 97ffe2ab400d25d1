"""The console in a browser: textual-serve's server, restricted to this machine and to holders of the token."""

from __future__ import annotations

import asyncio
import hmac
import secrets
import shlex
import signal
import sys
from collections.abc import Callable

import aiohttp_jinja2
from aiohttp import web
from aiohttp.typedefs import Handler
from textual_serve.server import Server

from mlebench_console.foundation.problems import EnvironmentProblem

HOST = "127.0.0.1"
_COOKIE = "mlebench-console"
# Only these host names are accepted: with any other, a page of another site could reach this server by DNS rebinding.
_OWN_NAMES = frozenset({"127.0.0.1", "localhost", "[::1]"})
_REFUSED = "403: this page needs the address that 'mlebench-console serve' has printed, with its token\n"
# The page may load nothing from other sites: neither fonts nor scripts, so no other site learns that it was opened.
_POLICY = (
    "default-src 'self'; script-src 'self' 'unsafe-inline'; style-src 'self' 'unsafe-inline';"
    " img-src 'self' data: blob:; font-src 'self' data:; connect-src 'self' ws:; frame-ancestors 'none'"
)


class GuardedServer(Server):
    """Serves the console to browsers that have presented the token once.

    Args:
        arguments: the command-line arguments of the console process behind each page.
        port: where to listen; 0 takes a free port.
        token: the token that browsers must present; a new one if not given.
    """

    def __init__(self, arguments: list[str], *, port: int, token: str = "") -> None:
        # `exec` replaces the shell, so that this process is the console's parent: it exits when its parent does.
        command = shlex.join(["exec", sys.executable, "-m", "mlebench_console.console", *arguments])
        super().__init__(command, host=HOST, port=port, title="mlebench-console")
        self.token = token or secrets.token_urlsafe(24)

    @property
    def address(self) -> str:
        """The URL of the console, with the token."""
        return f"http://{HOST}:{self.port}/?token={self.token}"

    async def run_until(self, ended: asyncio.Event, ready: Callable[[str], None]) -> None:
        """Serve until an event is set; `ready` is called with the address.

        Raises:
            EnvironmentProblem: the port can't be used.
        """
        runner = web.AppRunner(await self._make_app(), access_log=None)
        await runner.setup()
        try:
            try:
                await web.TCPSite(runner, self.host, self.port).start()
            except OSError as error:
                raise EnvironmentProblem(
                    f"port {self.port} can't be used",
                    error.strerror or str(error),
                    "Choose another one: --port.",
                ) from error
            self.port = runner.addresses[0][1]
            ready(self.address)
            await ended.wait()
        finally:
            await runner.cleanup()

    async def _make_app(self) -> web.Application:
        app = await super()._make_app()
        app.middlewares.append(self._guard)
        return app

    async def on_startup(self, app: web.Application) -> None:
        """Print nothing: the caller prints the address."""

    @web.middleware
    async def _guard(self, request: web.Request, handler: Handler) -> web.StreamResponse:
        """Accept requests with the token: in the URL the first time, in a cookie from then on."""
        name = request.host.rpartition(":")[0] or request.host
        origin = request.headers.get("Origin")
        if name not in _OWN_NAMES or (origin is not None and origin != f"http://{request.host}"):
            return web.Response(status=403, text=_REFUSED)
        shown = request.query.get("token")
        if shown is not None and request.path == "/" and self._is_token(shown):
            # Redirect to an address without the token, so that histories and bookmarks don't contain it.
            response: web.StreamResponse = web.Response(status=303, headers={"Location": "/"})
            response.set_cookie(_COOKIE, self.token, httponly=True, samesite="Strict")
        elif self._is_token(request.cookies.get(_COOKIE, "")):
            response = await handler(request)
        else:
            return web.Response(status=403, text=_REFUSED)
        if not response.prepared:
            response.headers["Content-Security-Policy"] = _POLICY
            response.headers["Referrer-Policy"] = "no-referrer"
            response.headers["X-Content-Type-Options"] = "nosniff"
        return response

    def _is_token(self, shown: str) -> bool:
        return hmac.compare_digest(shown.encode(), self.token.encode())

    async def handle_index(self, request: web.Request) -> web.Response:
        """Return the page, with addresses relative to the request's host: a tunnel may use another port."""
        return aiohttp_jinja2.render_template(
            "app_index.html",
            request,
            {
                "font_size": 16,
                "app_websocket_url": f"ws://{request.host}{request.app.router['websocket'].url_for()}",
                "config": {"static": {"url": f"http://{request.host}/static/"}},
                "application": {"name": self.title},
            },
        )


def serve(server: GuardedServer, ready: Callable[[str], None]) -> None:
    """Serve until SIGINT or SIGTERM.

    Raises:
        EnvironmentProblem: the port can't be used.
    """

    async def work() -> None:
        ended = asyncio.Event()
        for number in (signal.SIGINT, signal.SIGTERM):
            asyncio.get_running_loop().add_signal_handler(number, ended.set)
        await server.run_until(ended, ready)

    asyncio.run(work())
