"""What no page of the viewer asks is refused, and every answer has the headers that keep pages safe."""

from __future__ import annotations

import gzip
import json
import socket

import pytest

import deemster as dm
from deemster.store import open_store
from deemster.view.request_guard import HEADERS, LONGEST_BODY, GuardSettings
from deemster.view.viewer_server import listen
from tests.view.viewer_client import running_viewer
from tests.view.xss_payloads import PAYLOADS

TOKEN = "t0ken-of-the-test"
STATIC = ("/", "/app.js", "/app.css")


@pytest.fixture(scope="module")
def labelling(numbers):
    with running_viewer(numbers[0], author="ada") as client:
        yield client


@pytest.fixture(scope="module")
def guarded(numbers):
    """A viewer that asks for a token, as one beyond loopback does."""
    with running_viewer(numbers[0], guard=GuardSettings(None, token=TOKEN)) as client:
        yield client


def raw(client, request: bytes) -> bytes:
    """The answer to bytes on a socket."""
    with socket.create_connection(("127.0.0.1", client.port), timeout=20) as sent:
        sent.sendall(request)
        sent.shutdown(socket.SHUT_WR)
        return b"".join(iter(lambda: sent.recv(65536), b""))


@pytest.mark.parametrize(
    "host",
    [
        "evil.test",
        "evil.test:{port}",
        "127.0.0.1.evil.test:{port}",
        "localhost.evil.test:{port}",
        "127.0.0.1",
        "127.0.0.1:1",
        "localhost:{port}.evil.test",
        "0.0.0.0:{port}",
        "[::2]:{port}",
        "127.0.0.1:{port}@evil.test",
        "",
        "2130706433:{port}",
        "127.1:{port}",
    ],
)
@pytest.mark.parametrize("path", ["/", "/api/session"])
def test_other_host_is_refused(viewer, host, path):
    answer = viewer.send(path, headers={"Host": host.format(port=viewer.port)})
    assert answer.status == 403
    assert b"version" not in answer.body


@pytest.mark.parametrize("host", ["localhost:{port}", "LOCALHOST:{port}", "127.0.0.1:{port}", "[::1]:{port}"])
def test_own_host_is_answered(viewer, host):
    assert viewer.send("/api/session", headers={"Host": host.format(port=viewer.port)}).status == 200


def test_missing_and_double_host_are_refused(viewer):
    assert b" 400 " in raw(viewer, b"GET /api/session HTTP/1.1\r\n\r\n").splitlines()[0]
    two = f"GET /api/session HTTP/1.1\r\nHost: {viewer.address}\r\nHost: evil.test\r\n\r\n".encode()
    assert raw(viewer, two).splitlines()[0].split()[1] in (b"400", b"403")
    assert b" 403 " in raw(viewer, b"GET /api/session HTTP/1.0\r\n\r\n").splitlines()[0]


@pytest.mark.parametrize(
    "headers",
    [
        {"Origin": "http://evil.test"},
        {"Origin": "null"},
        {"Origin": "https://{address}"},
        {"Origin": "http://localhost:1"},
        {"Sec-Fetch-Site": "cross-site"},
        {"Sec-Fetch-Site": "same-site"},
        {"Origin": "http://{address}", "Sec-Fetch-Site": "cross-site"},
    ],
)
@pytest.mark.parametrize("method", ["GET", "POST"])
def test_other_sites_get_no_data(labelling, headers, method):
    sent = {name: value.format(address=labelling.address) for name, value in headers.items()}
    body = b"{}" if method == "POST" else None
    path = "/api/labels" if method == "POST" else "/api/runs"
    answer = labelling.send(path, method=method, headers={"Content-Type": "application/json", **sent}, body=body)
    assert answer.status == 403
    assert "access-control-allow-origin" not in answer.headers


def test_change_without_origin_is_refused(labelling):
    answer = labelling.send("/api/labels", method="POST", headers={"Content-Type": "application/json"}, body=b"{}")
    assert answer.status == 403


@pytest.mark.parametrize(
    "kind",
    [
        "text/plain",
        "application/x-www-form-urlencoded",
        "multipart/form-data; boundary=x",
        "",
        "application/jsonp",
        "text/json",
    ],
)
def test_body_of_another_kind_is_refused(labelling, kind):
    assert labelling.post("labels", {}, **{"Content-Type": kind}).status == 415


@pytest.mark.parametrize("method", ["PUT", "DELETE", "PATCH", "OPTIONS", "TRACE", "CONNECT", "POST", "PROPFIND"])
@pytest.mark.parametrize("path", ["/", "/api/session", "/api/runs/after"])
def test_methods_that_nothing_needs_are_refused(viewer, method, path):
    answer = viewer.send(path, method=method, headers={"Origin": f"http://{viewer.address}"})
    assert answer.status == 405
    assert answer.headers["allow"] == "GET, HEAD"


def test_long_body_is_refused_whatever_its_header_says(labelling):
    long = b'"' + b"x" * LONGEST_BODY + b'"'
    own = {"Content-Type": "application/json", "Origin": f"http://{labelling.address}"}
    assert labelling.send("/api/labels", method="POST", headers=own, body=long).status == 413
    head = f"POST /api/labels HTTP/1.1\r\nHost: {labelling.address}\r\nOrigin: http://{labelling.address}\r\n"
    chunked = head + "Content-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n"
    body = b"".join(b"8000\r\n" + b"x" * 0x8000 + b"\r\n" for _ in range(3)) + b"0\r\n\r\n"
    assert b" 413 " in raw(labelling, chunked.encode() + body).splitlines()[0]


TRAVERSALS = [
    prefix + step * depth + name
    for name in ("etc/passwd", "viewer_server.py")
    for prefix, depth in (("/", 6), ("/static/", 3))
    for step in (
        "../",
        "..%2f",
        "%2e%2e/",
        "%2e%2e%2f",
        "..%5c",
        "..\\",
        "....//",
        "..;/",
        "%252e%252e%252f",
        "..%c0%af",
    )
] + [
    "//etc/passwd",
    "/%2fetc/passwd",
    "/app.js/../viewer_server.py",
    "/app.js%00.css",
    "/.",
    "/index.html",
    "/static/app.js",
]


def test_there_are_forty_ways_to_ask_for_another_file():
    assert len(set(TRAVERSALS)) >= 40


@pytest.mark.parametrize("path", TRAVERSALS)
def test_no_path_reaches_another_file(viewer, path):
    for start in ("", "/api", "/api/runs"):
        answer = viewer.send(start + path)
        assert answer.status in (400, 404), (start, path, answer)
        assert b"root:" not in answer.body
        assert b"import" not in answer.body


def test_every_answer_has_the_headers(viewer, labelling, guarded):
    answers = [
        *(viewer.send(path) for path in (*STATIC, "/api/session", "/api/nothing", "/nothing", "/api/runs/nowhere")),
        viewer.send("/api/runs/after/samples?limit=x"),
        viewer.send("/", headers={"Host": "evil.test"}),
        viewer.send("/", method="PUT"),
        guarded.send("/api/session"),
        labelling.post("labels", {"run": "x"}),
    ]
    for answer in answers:
        assert {name: answer.headers.get(name) for name in HEADERS} == dict(HEADERS)
        assert not [name for name in answer.headers if name.startswith("access-control-")]
        assert "server" not in answer.headers
        assert "set-cookie" not in answer.headers
    assert "'unsafe" not in HEADERS["content-security-policy"]


def test_errors_name_no_file_of_this_machine(viewer, numbers):
    for path in (
        "/api/runs/nowhere",
        "/api/runs/nowhere/samples",
        "/api/compare?runs=a,b",
        "/api/runs/after/samples/999",
    ):
        said = viewer.send(path).body.decode()
        assert "/" not in json.loads(said)["error"]["message"], said


def test_token_is_asked_for_beyond_loopback(guarded):
    assert guarded.send("/api/session").status == 401
    for wrong in ("", "Bearer", "Bearer ", f"Bearer {TOKEN}x", f"Basic {TOKEN}", f"bearer {TOKEN}", TOKEN, "Bearer ü"):
        answer = guarded.send("/api/session", headers={"Authorization": wrong.encode("utf-8").decode("latin-1")})
        assert answer.status == 401, wrong
    assert guarded.send("/api/session", headers={"Authorization": f"Bearer {TOKEN}"}).status == 200
    # Pages hold no data, and a browser cannot send a token for them.
    assert guarded.send("/").status == 200


@pytest.mark.parametrize("name", ["token", "Token", "tok%65n"])
def test_token_in_a_query_is_refused(guarded, name):
    answer = guarded.send(f"/api/session?{name}={TOKEN}", headers={"Authorization": f"Bearer {TOKEN}"})
    assert answer.status == 400
    assert TOKEN not in answer.body.decode()


def test_token_stands_in_the_fragment_of_the_address():
    beyond, here = listen("0.0.0.0", 0), listen("127.0.0.1", 0)
    try:
        assert beyond.token is not None
        assert len(beyond.token) >= 32
        assert beyond.address.endswith(f"/#token={beyond.token}")
        assert beyond.guard.token == beyond.token
        assert (here.token, here.address) == (None, f"http://127.0.0.1:{here.port}/")
    finally:
        beyond.socket.close()
        here.socket.close()


def test_answers_are_compressed_beyond_loopback_alone(guarded, viewer):
    asked = {"Authorization": f"Bearer {TOKEN}", "Accept-Encoding": "gzip"}
    compressed = guarded.send("/app.js", headers=asked)
    plain = viewer.send("/app.js", headers={"Accept-Encoding": "gzip"})
    assert (compressed.headers["content-encoding"], plain.headers.get("content-encoding")) == ("gzip", None)
    assert gzip.decompress(compressed.body) == plain.body
    assert "content-encoding" not in guarded.send("/app.js", headers=asked | {"Accept-Encoding": "identity"}).headers


def test_web_socket_is_refused(viewer):
    head = f"GET /api/session HTTP/1.1\r\nHost: {viewer.address}\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n"
    key = "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\nSec-WebSocket-Version: 13\r\n\r\n"
    assert b"101" not in raw(viewer, (head + key).encode()).splitlines()[0]


def test_hostile_texts_are_data_in_every_field(tmp_path):
    assert len(set(PAYLOADS)) >= 120
    samples = [
        {
            "id": f"{place} {text}",
            "input": {text: text},
            "expected_output": text,
            "metadata": {"tags": [text], text: text},
        }
        for place, text in enumerate(PAYLOADS)
    ]
    place = str(tmp_path / "runs.db")
    dm.evaluate(
        dm.Dataset(samples, name=PAYLOADS[0]),
        target=lambda given: next(iter(given.values())),
        metrics=["exact-match", "rouge-l"],
        storage=place,
        name=PAYLOADS[1],
    )
    with open_store(place) as store, running_viewer(store) as client:
        answers = [
            client.send(f"/api/{path}")
            for path in (
                "runs",
                "runs/latest",
                "runs/latest/samples?limit=500",
                *(f"runs/latest/samples/{at}" for at in range(0, len(PAYLOADS), 7)),
            )
        ]
        for answer in answers:
            assert answer.status == 200
            assert answer.headers["content-type"] == "application/json"
            assert answer.headers["x-content-type-options"] == "nosniff"
        rows = answers[2].json["rows"]
        assert [row["preview"]["output"] for row in rows] == list(PAYLOADS)
        assert [row["id"] for row in rows] == [sample["id"] for sample in samples]
        asked = client.send("/api/runs/%3Cscript%3Ealert(1)%3C%2Fscript%3E")
        assert (asked.status, asked.headers["content-type"]) == (404, "application/json")


def test_change_without_a_body_is_answered(labelling):
    own = {"Content-Type": "application/json", "Origin": f"http://{labelling.address}"}
    for length in ({"Content-Length": "0"}, {}):
        answer = labelling.send("/api/labels", method="POST", headers={**own, **length})
        assert (answer.status, answer.message != "") == (400, True)


def test_change_whose_body_breaks_off_is_not_stored(labelling, numbers):
    store = numbers[0]
    run = store.runs()[0].id
    label = {"run": run, "position": 0, "metric": "exact-match", "verdict": "pass"}
    before = len(store.labels(run))
    body = json.dumps(label).encode()
    head = f"POST /api/labels HTTP/1.1\r\nHost: {labelling.address}\r\nOrigin: http://{labelling.address}\r\n"
    head += f"Content-Type: application/json\r\nContent-Length: {len(body) + 500}\r\n\r\n"
    assert b" 200 " not in raw(labelling, head.encode() + body)[:20]
    assert len(store.labels(run)) == before
    assert labelling.post("labels", label).status == 200
    assert len(store.labels(run)) == before + 1
