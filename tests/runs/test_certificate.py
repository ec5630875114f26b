"""Certificates: a stranger computes the report again, and no tampered certificate holds."""

from __future__ import annotations

import hashlib
import json
import random
import re
import sqlite3
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from click.testing import CliRunner

import deemster as dm
from deemster.cli import app
from deemster.errors import InputError, ReportError, StoreError
from deemster.runs.certificate import CertificateError, certify_run, verify_certificate
from deemster.store import open_store

WORDS = "the shop is open from nine to five on every day of the week but not on sundays in winter".split()  # noqa: SIM905


def samples(count: int) -> list[dict]:
    return [
        {
            "id": f"q{n}",
            "input": {"question": f"question {n}?"},
            "expected_output": " ".join(WORDS),
            "metadata": {"tags": ["even" if n % 2 == 0 else "odd"]},
        }
        for n in range(count)
    ]


def outputs(count: int) -> dict[str, str]:
    # Each shares another number of words with what is expected, so that no two marks are equal.
    return {f"q{n}": " ".join(WORDS[: n + 1]) for n in range(count)}


@pytest.fixture(scope="module")
def certified(tmp_path_factory) -> Path:
    """The certificate of a run of 16 samples with two metrics and a gate."""
    folder = tmp_path_factory.mktemp("certificate")
    with open_store(folder / "runs.db") as store:
        dm.evaluate(
            dm.Dataset(samples(16), name="shop"),
            outputs=outputs(16),
            metrics=["rouge-l", "token-f1"],
            gate={"min_pass_rate": 0.2},
            store=store,
        )
        certify_run(store, "latest", folder / "run.certificate")
    return folder / "run.certificate"


class Parts:
    """A certificate taken apart, to be put together again with digests that fit."""

    def __init__(self, data: bytes) -> None:
        first, _, rest = data.partition(b"\n")
        self.header = json.loads(first)
        size = self.header["facts"]["bytes"]
        self.facts, self.report = rest[:size].splitlines(), rest[size : size + self.header["report"]["bytes"]]

    def seal(self) -> bytes:
        """The certificate with every digest computed anew: that of the run, of both parts, and of the whole."""
        head, *lines, end = self.facts
        run = b"".join(line + b"\n" for line in lines)
        kinds = [json.loads(line)["line"] for line in lines]
        counts = {name: kinds.count(kind) for name, kind in (("samples", "sample"), ("outputs", "output"))}
        counts["marks"] = kinds.count("marks")
        last = json.loads(end) | counts | {"sha256": hashlib.sha256(run).hexdigest()}
        facts = head + b"\n" + run + json.dumps(last, separators=(",", ":")).encode() + b"\n"
        parts = {"facts": facts, "report": self.report}
        for name, part in parts.items():
            self.header[name] = {"bytes": len(part), "sha256": hashlib.sha256(part).hexdigest()}
        whole = json.dumps(self.header, separators=(",", ":")).encode() + b"\n" + facts + self.report
        return whole + b'{"sha256":"' + hashlib.sha256(whole).hexdigest().encode() + b'"}\n'

    def places(self, kind: str) -> list[int]:
        return [at for at, line in enumerate(self.facts) if line.startswith(f'{{"line":"{kind}"'.encode())]


def flip(data: bytes, draw: random.Random) -> bytes:
    at = draw.randrange(len(data))
    return data[:at] + bytes([data[at] ^ (1 << draw.randrange(8))]) + data[at + 1 :]


def truncate(data: bytes, draw: random.Random) -> bytes:
    return data[: draw.randrange(len(data))]


def insert(data: bytes, draw: random.Random) -> bytes:
    at = draw.choice([len(data), draw.randrange(len(data))])
    return data[:at] + draw.choice([b" ", b"\n", b"0", b"{}\n", b"\x00"]) + data[at:]


def move_lines(data: bytes, draw: random.Random) -> bytes:
    lines = data.splitlines(keepends=True)
    one, other = sorted(draw.sample(range(len(lines)), 2))
    act = draw.choice(["drop", "double", "swap"])
    if act == "drop":
        del lines[one]
    elif act == "double":
        lines.insert(one, lines[one])
    else:
        lines[one], lines[other] = lines[other], lines[one]
    return b"".join(lines)


def seal_other_marks(data: bytes, draw: random.Random) -> bytes:
    """Other marks, with every digest computed anew, and the old report."""
    parts = Parts(data)
    one, other = draw.sample(parts.places("marks"), 2)
    act = draw.choice(["drop", "swap", "raise", "relabel"])
    if act == "drop":
        del parts.facts[one]
    elif act == "swap":
        first, second = json.loads(parts.facts[one]), json.loads(parts.facts[other])
        first["marks"], second["marks"] = second["marks"], first["marks"]
        for at, line in ((one, first), (other, second)):
            parts.facts[at] = json.dumps(line, separators=(",", ":")).encode()
    else:
        line = json.loads(parts.facts[one])
        if act == "raise":
            line["marks"][draw.randrange(2)]["score"] = round(draw.random() * 0.9 + 0.05, 4)
        else:
            line["marks"].reverse()
        parts.facts[one] = json.dumps(line, separators=(",", ":")).encode()
    return parts.seal()


def seal_other_facts(data: bytes, draw: random.Random) -> bytes:
    """Another output, sample or fact that the report shows, with every digest computed anew, and the old report."""
    parts = Parts(data)
    kind, old, new = draw.choice(
        [
            ("output", b"the shop", b"the shed"),
            ("sample", b'"question ', b'"problem '),
            ("sample", b'"metadata":{"tags":["even"]', b'"metadata":{"tags":["odd"]'),
            ("run", b'"seed":', b'"seed":1'),
            ("run", b'"dataset":"shop"', b'"dataset":"stop"'),
            ("run", b'"gate":[[["min_pass_rate","pass_rate",0.2', b'"gate":[[["min_pass_rate","pass_rate",0.1'),
            ("scoring", b'"name":"rouge-l"', b'"name":"rouge-m"'),
            ("scoring", b'"identity":"rouge-l v1"', b'"identity":"rouge-l v2"'),
        ]
    )
    at = draw.choice([at for at in parts.places(kind) if old in parts.facts[at]])
    parts.facts[at] = parts.facts[at].replace(old, new, 1)
    return parts.seal()


def seal_other_report(data: bytes, draw: random.Random) -> bytes:
    parts = Parts(data)
    numbers = list(re.finditer(rb"0\.[0-9]+", parts.report))
    found = draw.choice(numbers)
    parts.report = parts.report[: found.start()] + b"0.77" + parts.report[found.end() :]
    return parts.seal()


def seal_other_header(data: bytes, draw: random.Random) -> bytes:
    parts = Parts(data)
    act = draw.randrange(6)
    changes: list[Callable[[], object]] = [
        lambda: parts.header.update(run=f"{parts.header['run']}x"),
        lambda: parts.header.update(dataset=draw.choice("abcdef")),
        lambda: parts.header.update(fingerprint=f"{draw.getrandbits(256):064x}"),
        lambda: parts.header["metrics"].update({"rouge-l": f"rouge-l v{draw.randrange(2, 9)}"}),
        lambda: parts.header["metrics"].pop("token-f1"),
        lambda: parts.header["versions"].update(deemster=f"9.{draw.randrange(9)}"),
    ]
    changes[act]()
    return parts.seal()


TAMPERINGS = (
    (flip, 400),
    (truncate, 150),
    (insert, 100),
    (move_lines, 150),
    (seal_other_marks, 90),
    (seal_other_facts, 50),
    (seal_other_report, 30),
    (seal_other_header, 30),
)


def tampered(data: bytes) -> Iterator[tuple[str, bytes]]:
    draw = random.Random(19)
    for tamper, times in TAMPERINGS:
        for _ in range(times):
            while (found := tamper(data, draw)) == data:
                pass
            yield tamper.__name__, found


def test_no_one_of_1000_tampered_certificates_holds(certified, tmp_path, monkeypatch):
    # Several hundred stores are made, and a disk would wait for each.
    monkeypatch.setattr(tempfile, "tempdir", "/dev/shm" if Path("/dev/shm").is_dir() else None)
    data, file = certified.read_bytes(), tmp_path / "tampered.certificate"
    assert verify_certificate(certified)
    held, count = [], 0
    for name, forged in tampered(data):
        file.write_bytes(forged)
        count += 1
        try:
            verify_certificate(file)
        except CertificateError:
            continue
        held.append(name)
    assert (held, count) == ([], 1000)


def test_sealing_again_without_a_change_gives_the_same_bytes(certified):
    assert Parts(certified.read_bytes()).seal() == certified.read_bytes()


@pytest.mark.parametrize(
    ("tamper", "why"),
    [
        (lambda data: data.replace(b"the shop", b"the shed", 1), "its facts were altered"),
        (lambda data: data.replace(b'"macro_f1": 0.', b'"macro_f1": 1.', 1), "its report was altered"),
        (lambda data: data + b"\n", "its last line does not fit"),
        (lambda data: data[1:], "its first line is not that of a `deemster.certificate.v1` file"),
        (lambda data: seal_other_report(data, random.Random(1)), "its report does not follow from its facts"),
    ],
)
def test_message_says_why_it_does_not_hold(certified, tmp_path, tamper, why):
    file = tmp_path / "tampered.certificate"
    file.write_bytes(tamper(certified.read_bytes()))
    with pytest.raises(CertificateError, match=re.escape(why)):
        verify_certificate(file)


def test_certificate_of_another_version_that_makes_another_report_names_that_version(certified, tmp_path):
    data = Parts(seal_other_report(certified.read_bytes(), random.Random(1)))
    data.header["versions"]["deemster"] = "0.0.9"
    data.facts[0] = data.facts[0].replace(b'"tool_version":"0.1.0"', b'"tool_version":"0.0.9"')
    file = tmp_path / "old.certificate"
    file.write_bytes(data.seal())
    with pytest.raises(CertificateError, match=r"Verify it with deemster 0\.0\.9"):
        verify_certificate(file)


def test_stranger_gets_the_report_and_the_facts_without_the_store(certified, tmp_path):
    verified = verify_certificate(certified, extract=tmp_path / "parts")
    with open_store(certified.with_name("runs.db")) as store:
        run = store.run("latest")
        assert (verified.header.run, verified.header.fingerprint) == (run.id, run.fingerprint)
    report = dm.load_report(tmp_path / "parts" / "report.json")
    assert (report.run.id, report.totals.samples) == (run.id, 16)
    done = CliRunner().invoke(app, ["report", run.id, "--store", str(certified.with_name("runs.db")), "--json", "-"])
    assert done.stdout.encode() == (tmp_path / "parts" / "report.json").read_bytes()
    taken = CliRunner().invoke(
        app, ["store", "import", str(tmp_path / "parts" / "run.jsonl"), "--store", str(tmp_path / "other.db")]
    )
    assert taken.exit_code == 0, taken.output


def test_commands_certify_and_verify(certified, tmp_path):
    file, store = tmp_path / "c.certificate", str(certified.with_name("runs.db"))
    done = CliRunner().invoke(app, ["certify", "latest", "--to", str(file), "--store", store])
    assert done.exit_code == 0, done.output
    checked = CliRunner().invoke(app, ["verify", str(file)])
    assert checked.exit_code == 0
    assert f"sha256: {done.stdout.strip()}\n" in checked.stdout
    file.write_bytes(file.read_bytes()[:-1])
    assert CliRunner().invoke(app, ["verify", str(file)]).exit_code == 1
    assert CliRunner().invoke(app, ["verify", str(tmp_path / "nothing")]).exit_code == 2


def test_same_run_gives_the_same_bytes(certified, tmp_path):
    with open_store(certified.with_name("runs.db")) as store:
        certify_run(store, "latest", tmp_path / "again.certificate")
    assert (tmp_path / "again.certificate").read_bytes() == certified.read_bytes()


@pytest.mark.parametrize("kind", ["part", "repeated", "rescored", "unscored", "judged by a custom metric"])
def test_runs_of_every_kind_can_be_certified(tmp_path, kind):
    @dm.metric("own")
    def own(expected: str, actual: str) -> float:
        return len(actual) / 100

    dataset = dm.Dataset(samples(6), name="shop")
    settings: dict = {"metrics": ["rouge-l"], "outputs": outputs(6)}
    if kind == "part":
        dataset = dataset.select(tags="even")
    elif kind == "repeated":
        settings["outputs"] = {name: [text, f"{text}!"] for name, text in outputs(6).items()}
        settings["repetitions"] = 2
    elif kind == "unscored":
        settings["metrics"] = [{"latency-below": {"max_ms": 1}}]
    elif kind == "judged by a custom metric":
        settings["metrics"] = [own]
    with open_store(tmp_path / "runs.db") as store:
        run = dm.evaluate(dataset, store=store, max_unscored="100%", **settings).run.id
        if kind == "rescored":
            flags = ["rescore", run, "--metric", "token-f1", "--store", str(tmp_path / "runs.db")]
            assert CliRunner().invoke(app, flags).exit_code == 0
        verified = certify_run(store, run, tmp_path / "run.certificate")
    assert verify_certificate(tmp_path / "run.certificate") == verified


def test_damaged_run_is_not_certified_and_nothing_is_written(tmp_path):
    with open_store(tmp_path / "runs.db") as store:
        dm.evaluate(dm.Dataset(samples(3), name="shop"), outputs=outputs(3), metrics=["rouge-l"], store=store)
    with sqlite3.connect(tmp_path / "runs.db") as database:
        database.execute("UPDATE marks SET body = replace(body, '0', '1')")
    database.close()
    with open_store(tmp_path / "runs.db") as store, pytest.raises((StoreError, InputError), match="damaged"):
        certify_run(store, "latest", tmp_path / "run.certificate")
    assert not (tmp_path / "run.certificate").exists()


def test_recording_without_marks_has_no_report_to_certify(tmp_path):
    with open_store(tmp_path / "runs.db") as store, dm.Recorder("traffic", store=tmp_path / "runs.db") as recorder:
        recorder.record({"q": "x"}, "y")
        recorder.close()
        with pytest.raises(ReportError, match="no marks"):
            certify_run(store, "latest", tmp_path / "run.certificate")
