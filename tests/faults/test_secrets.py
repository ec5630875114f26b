"""A model key in the texts of targets or metrics is never written or shown."""

from __future__ import annotations

import base64
import http.server
import json
import threading
from decimal import Decimal

import pytest

from deemster.engine._target_calls import redact_answer
from deemster.errors import DeemsterError
from deemster.models.openai_client import OpenAIChat
from deemster.models.secret_redaction import Secrets
from deemster.records import Output, TargetFailure, Usage
from deemster.testing import ModelServer
from tests.builders.json_lines import json_lines
from tests.cli.workspace import called, written

KEY = 'zq8-"very"-secret-0123456789'
APP = """\
import os
import deemster as dm

def answer(asked):
    key, number = os.environ["MY_KEY"], asked["n"]
    if number == 0:
        raise RuntimeError(f"401 for the key {key}")
    if number == 1:
        return dm.Output(f"The key is {key}.", retrieved=[{"id": "p", "text": f"... {key}"}])
    if number == 2:
        return {"headers": {"x": key}}
    if number == 3:
        return f"bad \\ud800 {key}"
    return "fine"

class Leaky:
    name = "leaky"

    def score(self, sample, output):
        if sample.input["n"] == 4:
            raise ValueError(f"refused: {os.environ['MY_KEY']}")
        return 1.0

leaky = Leaky()
"""
SUITE = """\
name: telltale
dataset: golden.jsonl
target: { python: "app:answer" }
metrics: [exact-match, "app:leaky", llm-as-judge]
models:
  judge: { base_url: "${URL}", model: m, api_key_env: MY_KEY, retries: 0 }
"""
REPORTS = ("json", "md", "csv", "html", "junit")


def test_key_in_target_or_metric_text_reaches_no_output(folder, monkeypatch):
    golden = json_lines(*({"id": f"s{n}", "input": {"n": n}, "expected_output": "fine"} for n in range(6)))
    written(folder, {"app.py": APP, "suite.yml": SUITE, "golden.jsonl": golden})
    with ModelServer() as server:
        server.play(["401", "merge"])
        # The target and its metric read the key from the environment.
        monkeypatch.setenv("MY_KEY", KEY)
        flags = [part for kind in REPORTS for part in ("--to", f"{kind}:report.{kind}")]
        shown = [called("run", "suite.yml", *flags, URL=server.url)]
        shown.append(called("show", "latest"))
        shown.append(called("show", "latest"))
        shown.append(called("export", "latest", "--to", "run.jsonl"))
        asked = [json.dumps(request.document) for request in server.requests]
    forms = (KEY, json.dumps(KEY)[1:-1], json.dumps(json.dumps(KEY)[1:-1])[1:-1], KEY.replace('"', "&quot;"))
    forms += (KEY.replace('"', '""'), KEY.partition('"')[2])
    files = [path for path in folder.rglob("*") if path.is_file() and path.name != "app.py"]
    assert {path.name for path in files} >= {"runs.db", "run.jsonl", "answers.jsonl", *(f"report.{k}" for k in REPORTS)}
    for text in [*(path.read_text("utf-8", "replace") for path in files), *asked, *(each.output for each in shown)]:
        assert not any(form in text for form in forms)
    report = json.loads((folder / "report.json").read_text())
    assert report["executions"][1]["output"] == "The key is [removed]."
    assert report["totals"]["target_failures"] == 1


class Parrot(ModelServer):
    """Repeats in its good replies everything that it was sent."""

    def __init__(self):
        super().__init__(answer=lambda _: json.dumps({"reason": self.heard, "score": 0.5}), logprobs=False)

    async def _reply(self, request, *, chat):
        body = json.loads(await request.read())
        self.heard = json.dumps([str(request.url), dict(request.headers), {**body, "messages": []}])
        return await super()._reply(request, chat=chat)


class Echo(http.server.BaseHTTPRequestHandler):
    """An application that repeats in its answer where it was asked, and fails now and then with it."""

    def do_POST(self):
        asked = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        said = json.dumps({"output": f"{self.path} {dict(self.headers)} {asked}"}).encode()
        self.send_response(400 if asked["input"]["n"] == 1 else 200)
        self.end_headers()
        self.wfile.write(said)

    def log_message(self, *_):
        """Say nothing."""


HIDDEN = {
    "user": "basic-user-01",
    "password": "basic/pass+word-02",
    "proxy_user": "proxy-user-03",
    "proxy_password": "proxy-pass-04",
    "extra": "label-of-extra-05",
    "nested": "nested-of-extra-06",
    "token": "token-of-target-07",
    "header": "header-of-target-08",
}
REPEATING = """\
name: repeated
dataset: golden.jsonl
target:
  http:
    url: "${TARGET_URL}/ask?token=token-of-target-07&q={{input.n}}"
    headers: { X-Trace: "${TRACE}" }
    body: { input: "{{input}}" }
    output: output
    retries: 0
metrics: [llm-as-judge, { llm-as-judge: { name: other, models: ["judge:proxied"] } }]
models:
  judge:
    base_url: "${URL}"
    model: m
    record: replies.jsonl
    retries: 0
    extra: { label: "${LABEL}", more: { deep: ["x ${NESTED}"] } }
  "judge:proxied": { base_url: "http://models.invalid/v1", model: p, record: proxied.jsonl, retries: 0 }
"""


def test_secrets_that_good_replies_repeat_are_written_and_shown_nowhere(folder, monkeypatch):
    golden = json_lines(*({"id": f"s{n}", "input": {"n": n}, "expected_output": "x"} for n in range(3)))
    written(folder, {"suite.yml": REPEATING, "golden.jsonl": golden})
    application = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Echo)
    threading.Thread(target=application.serve_forever, daemon=True).start()
    for name in ("NO_PROXY", "no_proxy", "HTTP_PROXY"):
        monkeypatch.delenv(name, raising=False)
    quoted = HIDDEN["password"].replace("/", "%2F").replace("+", "%2B")
    with Parrot() as server:
        address = server.url.removeprefix("http://")
        environ = {
            "URL": f"http://{HIDDEN['user']}:{quoted}@{address}",
            "http_proxy": f"http://{HIDDEN['proxy_user']}:{HIDDEN['proxy_password']}@{address.removesuffix('/v1')}",
            "TARGET_URL": f"http://127.0.0.1:{application.server_port}",
            "LABEL": HIDDEN["extra"],
            "NESTED": HIDDEN["nested"],
            "TRACE": HIDDEN["header"],
        }
        flags = [part for kind in REPORTS for part in ("--to", f"{kind}:report.{kind}")]
        shown = [called("run", "suite.yml", *flags, **environ)]
        heard = [json.dumps(request.headers) + request.body.decode() for request in server.requests]
        shown += [called(*words) for words in (("show", "latest"), ("show", "latest"))]
        shown.append(called("export", "latest", "--to", "run.jsonl"))
        shown.append(called("run", "suite.yml", "--outputs", "latest", "--metric", "llm-as-judge", **environ))
    application.shutdown()
    application.server_close()
    pairs = [("user", "password"), ("proxy_user", "proxy_password")]
    tokens = [base64.b64encode(":".join(HIDDEN[name] for name in pair).encode()).decode() for pair in pairs]
    # The models were really sent them.
    assert all(any(token in each for each in heard) for token in tokens)
    assert all(any(HIDDEN[name] in each for each in heard) for name in ("extra", "nested"))
    files = [path for path in folder.rglob("*") if path.is_file() and path.name != "suite.yml"]
    assert {path.name for path in files} >= {"runs.db", "run.jsonl", "answers.jsonl", "replies.jsonl", "proxied.jsonl"}
    texts = {path.name: path.read_text("utf-8", "replace") for path in files}
    texts |= {f"output {number}": each.output for number, each in enumerate(shown)}
    leaks = [
        (place, secret)
        for place, text in texts.items()
        for secret in (*HIDDEN.values(), quoted, *tokens, HIDDEN["password"].replace("/", "\\/"))
        if secret in text
    ]
    assert leaks == []
    report = json.loads((folder / "report.json").read_text())
    marks = report["executions"][0]["marks"]
    assert all("[removed]" in marks[name]["details"]["judge_reason"] for name in ("llm-as-judge", "other"))
    assert report["totals"]["target_failures"] == 1


ADDRESSES = [
    "me:{}@host/v1",
    "https:/me:{}@host/v1",
    "https//me:{}@host/v1",
    "ftp://me:{}@host/v1",
    "http://me:{}@host:port/v1",
    "http://me:{}@",
    "//me:{}@host/v1",
    "host/v1?token={}",
    "http://host:99999/v1?api_key={}",
    "postgresql:/u:{}@h/db",
    "postgresql:u:{}@h/db",
    "postgres//u:{}@h/db",
    "postgresql://u:{}/x@h/db",
    "postgresql://u:{}@h:port/db",
    "mysql://u:{}@h/db",
    "u:{}@h://db",
    "host=h password={} dbname=d",
    "dbname=d password = '{}'",
]


@pytest.mark.parametrize("address", ADDRESSES)
def test_mistyped_address_is_not_echoed(folder, address):
    secret = "pw-Very-Secret-1"
    wrong = address.format(secret)
    suite = """\
dataset: golden.jsonl
target: {{ http: "{0}" }}
metrics: [llm-as-judge]
models: {{ judge: {{ base_url: "{1}", model: m }} }}
"""
    written(
        folder,
        {
            "golden.jsonl": json.dumps({"id": "s", "input": {"n": 1}, "expected_output": "x"}) + "\n",
            "model.yml": suite.format("http://127.0.0.1:9/", wrong),
            "target.yml": suite.format(wrong, "http://127.0.0.1:9/v1"),
            "variable.yml": suite.format("${ADDRESS}", "${ADDRESS}"),
            "items.json": json.dumps({"rubric": {"criteria": [{"name": "a", "requirement": "A."}]}, "items": []}),
        },
    )
    if "postgresql://" not in address:
        with pytest.raises(DeemsterError) as raised:
            OpenAIChat(wrong, "m")
        assert secret not in str(raised.value)
    results = [
        *(
            called("run", name, "--store", "none", ADDRESS=wrong)
            for name in ("model.yml", "target.yml", "variable.yml")
        ),
        *(called("check", name, ADDRESS=wrong) for name in ("model.yml", "target.yml", "variable.yml")),
        called("grade", "items.json", "--models", "model.yml", ADDRESS=wrong),
        *(called(*words, "--store", wrong) for words in (("show",), ("store",), ("store", "check"))),
        *(called(*words, DEEMSTER_STORE=wrong) for words in (("show",), ("show", "latest"), ("run", "model.yml"))),
    ]
    assert all(secret not in each.output for each in results)
    assert all(each.exit_code == 2 for each in results if "No such" not in each.output and each not in results[3:6])
    assert not [path for path in folder.rglob("*") if secret in str(path)]


@pytest.mark.parametrize("answer", [Output("plain", usage=Usage(cost_usd=Decimal("0.1"))), Output("bad \ud800")])
def test_answer_without_secret_is_unchanged(answer):
    assert redact_answer(answer, Secrets([KEY])) == answer


def test_key_like_text_is_removed_from_failures_but_kept_in_answers():
    said = "sk-abcdefghijklmnop"
    assert (
        redact_answer(TargetFailure(f"Incorrect API key: {said}"), Secrets()).message == "Incorrect API key: [removed]"
    )
    assert redact_answer(Output(said), Secrets([KEY])).text == said
