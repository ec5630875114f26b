"""The server of the viewer: where it listens, and what it needs to answer there."""

from __future__ import annotations

import contextlib
import ipaddress
import secrets
import socket
from collections.abc import Callable
from typing import TYPE_CHECKING, NamedTuple

from deemster.errors import InputError
from deemster.view.request_guard import API, GuardSettings, RequestGuard
from deemster.view.viewer_api import Viewer, create_app

if TYPE_CHECKING:
    import uvicorn
    from starlette.applications import Starlette

PORT = 7070
LOOPBACK = "127.0.0.1"


class Listening(NamedTuple):
    """Where the viewer listens.

    Attributes:
        socket: The open socket.
        host: The host as addresses have it.
        port: The port.
        token: What requests must show; None on loopback.
    """

    socket: socket.socket
    host: str
    port: int
    token: str | None

    @property
    def address(self) -> str:
        """The address to open in a browser; a token stands in its fragment, which browsers do not send."""
        return f"http://{self.host}:{self.port}/" + ("" if self.token is None else f"#token={self.token}")

    @property
    def guard(self) -> GuardSettings:
        """Who may ask what."""
        names = {self.host} if self.token is not None else {"localhost", LOOPBACK, "[::1]", self.host}
        is_any = self.host in ("0.0.0.0", "[::]")  # noqa: S104 - a name of all addresses, compared
        hosts = {f"{name}:{self.port}" for name in names} | (names if self.port == 80 else set())
        return GuardSettings(None if is_any else frozenset(hosts), token=self.token)


def listen(host: str, port: int | None) -> Listening:
    """Open the socket that the viewer listens on.

    Args:
        host: A name or an address. Beyond loopback, requests need a token.
        port: The port; 0 for any free one, None for the usual one or, where it is taken, any free one.

    Raises:
        InputError: The host is none of this machine, or the port is taken.
    """
    try:
        found = socket.getaddrinfo(host, PORT if port is None else port, type=socket.SOCK_STREAM)[0]
    except OSError:
        raise InputError(f"`--host {host}`: no address of this name was found.") from None
    family, _, _, _, address = found
    opened = socket.socket(family, socket.SOCK_STREAM)
    opened.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        try:
            opened.bind(address)
        except OSError:
            if port is not None:
                raise
            opened.bind((address[0], 0, *address[2:]))
    except OSError as error:
        opened.close()
        raise InputError(f"The viewer cannot listen on `{host}`, port {port or PORT}: {error.strerror}.") from None
    # A browser that is faster than the server waits.
    opened.listen()
    is_loopback = ipaddress.ip_address(str(opened.getsockname()[0]).partition("%")[0]).is_loopback
    name = f"[{host}]" if ":" in host else host
    token = None if is_loopback else secrets.token_urlsafe(32)
    return Listening(opened, name.lower(), opened.getsockname()[1], token)


def create_server(app: Starlette, viewer: Viewer, guard: GuardSettings) -> uvicorn.Server:
    """The server of the viewer.

    Args:
        app: Answers requests that are not refused.
        viewer: What it answers with.
        guard: Who may ask what.
    """
    import uvicorn  # noqa: PLC0415 - an extra
    from starlette.middleware.gzip import GZipMiddleware  # noqa: PLC0415 - an extra

    if viewer.author is not None:
        guard = guard._replace(posts=frozenset(API + path for path in viewer.acts))
    return uvicorn.Server(
        uvicorn.Config(
            # On the same machine, compressing costs more than it saves.
            RequestGuard(app if guard.token is None else GZipMiddleware(app), guard),
            http="h11",
            ws="none",
            lifespan="off",
            log_config=None,
            access_log=False,
            server_header=False,
            timeout_graceful_shutdown=1,
        )
    )


def serve(viewer: Viewer, *, host: str, port: int | None, tell: Callable[[str], None]) -> None:
    """Answer requests until the process is interrupted.

    Args:
        viewer: Answers what pages ask.
        host: Where it listens. Beyond loopback, requests need a token.
        port: The port; 0 for any free one, None for the usual one or, where it is taken, any free one.
        tell: Gets the address to open in a browser.

    Raises:
        MissingExtraError: The extra `view` is not installed.
        InputError: The host is none of this machine, or the port is taken.
    """
    app = create_app(viewer)
    listening = listen(host, port)
    with listening.socket, contextlib.suppress(KeyboardInterrupt):
        server = create_server(app, viewer, listening.guard)
        tell(listening.address)
        server.run(sockets=[listening.socket])
