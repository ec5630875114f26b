"""A viewer that listens on loopback in a thread, and a client that sends it whatever a test wants."""

from __future__ import annotations

import http.client
import json
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any, NamedTuple

from deemster.store import Store
from deemster.view.request_guard import GuardSettings
from deemster.view.viewer_api import Viewer, create_app
from deemster.view.viewer_server import Listening, create_server, listen


class Answer(NamedTuple):
    status: int
    headers: dict[str, str]
    body: bytes

    @property
    def json(self) -> Any:
        return json.loads(self.body)

    @property
    def message(self) -> str:
        return self.json["error"]["message"]


class Client:
    """Sends requests to a viewer."""

    def __init__(self, listening: Listening) -> None:
        self.port, self.address = listening.port, f"127.0.0.1:{listening.port}"

    def send(
        self, path: str, *, method: str = "GET", headers: Mapping[str, str] | None = None, body: bytes | None = None
    ) -> Answer:
        """Send one request; `Host` is as given, else the right one."""
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=20)
        try:
            connection.putrequest(method, path, skip_host=True, skip_accept_encoding=True)
            for name, value in {"Host": self.address, **(headers or {})}.items():
                connection.putheader(name, value)
            if body is not None and "Content-Length" not in (headers or {}):
                connection.putheader("Content-Length", str(len(body)))
            connection.endheaders(body)
            answer = connection.getresponse()
            found = {name.lower(): value for name, value in answer.getheaders()}
            return Answer(answer.status, found, answer.read())
        finally:
            connection.close()

    def get(self, path: str, **headers: str) -> Any:
        """The JSON at a path of the API."""
        answer = self.send(f"/api/{path}", headers=headers)
        assert answer.status == 200, (path, answer)
        return answer.json

    def post(self, path: str, value: Any, **headers: str) -> Answer:
        """Post JSON as a page of the viewer does."""
        own = {"Content-Type": "application/json", "Origin": f"http://{self.address}", **headers}
        return self.send(f"/api/{path}", method="POST", headers=own, body=json.dumps(value).encode())


@contextmanager
def running_viewer(store: Store, *, author: str | None = None, guard: GuardSettings | None = None) -> Iterator[Client]:
    """A viewer in a thread of its own, and a client of it."""
    listening = listen("127.0.0.1", 0)
    viewer = Viewer(store, author=author)
    server = create_server(create_app(viewer), viewer, guard or listening.guard)
    thread = threading.Thread(target=server.run, kwargs={"sockets": [listening.socket]}, daemon=True)
    thread.start()
    try:
        while not server.started:
            assert thread.is_alive()
            time.sleep(0.005)
        yield Client(listening)
    finally:
        server.should_exit = True
        thread.join()
