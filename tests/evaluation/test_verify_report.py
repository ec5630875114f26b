"""Passing on a run: a stranger computes its report again from the run file, and no tampered pair of files holds."""

from __future__ import annotations

import hashlib
import json
import random
import re
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

import msgspec
import pytest
from click.testing import CliRunner

import deemster as dm
from deemster.cli import app
from deemster.errors import InputError, ReportError, StoreError
from deemster.evaluation.verify_report import verify_report
from deemster.store import open_store
from deemster.store.run_export import export_runs
from tests.builders.arguments import arguments

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


class Passed(NamedTuple):
    """What is passed on: a report and a run file."""

    report: Path
    facts: Path
    sha256: str

    def holds(self, *, sha256: bool = True) -> bool:
        return not self.differences(sha256=sha256)

    def differences(self, *, sha256: bool = False) -> tuple[str, ...]:
        return verify_report(self.report, self.facts, sha256=self.sha256 if sha256 else None).differences

    def copy(self, folder: Path, *, report: bytes | None = None, facts: bytes | None = None) -> Passed:
        """The same in another folder, with other bytes of one of the files."""
        copied = self._replace(report=folder / "report.json", facts=folder / "run.jsonl")
        copied.report.write_bytes(self.report.read_bytes() if report is None else report)
        copied.facts.write_bytes(self.facts.read_bytes() if facts is None else facts)
        return copied


def pass_on(store: str | Path, folder: Path, run: str = "latest", *flags: str) -> Passed:
    report, facts = folder / "report.json", folder / "run.jsonl"
    done = CliRunner().invoke(app, ["show", run, "--store", str(store), "--to", f"json:{report}", *flags])
    assert done.exit_code == 0, done.output
    done = CliRunner().invoke(app, ["export", run, "--store", str(store), "--to", str(facts)])
    assert done.exit_code == 0, done.output
    return Passed(report, facts, done.stdout.strip())


@pytest.fixture(scope="module")
def passed(tmp_path_factory) -> Passed:
    """A run of 16 samples with two metrics and a gate."""
    folder = tmp_path_factory.mktemp("passed")
    with open_store(folder / "runs.db") as store:
        dm.evaluate(
            dm.Dataset(samples(16), name="shop"),
            outputs=outputs(16),
            metrics=["rouge-l", "token-f1"],
            gate={"min_pass_rate": 0.2},
            storage=store,
        )
    return pass_on(folder / "runs.db", folder)


@pytest.fixture
def memory(monkeypatch) -> None:
    """Several hundred stores are made, and a disk would wait for each."""
    monkeypatch.setattr(tempfile, "tempdir", "/dev/shm" if Path("/dev/shm").is_dir() else None)


def seal(lines: list[bytes]) -> bytes:
    """The run file with the counts and the check sum of its run computed anew."""
    head, *rest, end = lines
    run = b"".join(line + b"\n" for line in rest)
    kinds = [json.loads(line)["line"] for line in rest]
    counts = {name: kinds.count(kind) for name, kind in (("samples", "sample"), ("outputs", "output"))}
    counts["marks"] = kinds.count("marks")
    last = json.loads(end) | counts | {"sha256": hashlib.sha256(run).hexdigest()}
    return head + b"\n" + run + json.dumps(last, separators=(",", ":")).encode() + b"\n"


def places(lines: list[bytes], kind: str) -> list[int]:
    return [at for at, line in enumerate(lines) if line.startswith(f'{{"line":"{kind}"'.encode())]


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
    """Other marks, with the check sum of the run computed anew."""
    lines = data.splitlines()
    one, other = draw.sample(places(lines, "marks"), 2)
    act = draw.choice(["drop", "swap", "raise", "relabel"])
    if act == "drop":
        del lines[one]
    elif act == "swap":
        first, second = json.loads(lines[one]), json.loads(lines[other])
        first["marks"], second["marks"] = second["marks"], first["marks"]
        for at, line in ((one, first), (other, second)):
            lines[at] = json.dumps(line, separators=(",", ":")).encode()
    else:
        line = json.loads(lines[one])
        if act == "raise":
            line["marks"][draw.randrange(2)]["score"] = round(draw.random() * 0.9 + 0.05, 4)
        else:
            line["marks"].reverse()
        lines[one] = json.dumps(line, separators=(",", ":")).encode()
    return seal(lines)


def seal_other_facts(data: bytes, draw: random.Random) -> bytes:
    """Another output, sample or fact that the report shows, with the check sum of the run computed anew."""
    lines = data.splitlines()
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
    at = draw.choice([at for at in places(lines, kind) if old in lines[at]])
    lines[at] = lines[at].replace(old, new, 1)
    return seal(lines)


def other_number(report: bytes, draw: random.Random) -> bytes:
    found = draw.choice(list(re.finditer(rb"0\.[0-9]+", report)))
    return report[: found.start()] + b"0.77" + report[found.end() :]


Tamper = Callable[[bytes, random.Random], bytes]
OF_THE_FILE: tuple[tuple[Tamper, int], ...] = ((flip, 250), (truncate, 100), (insert, 60), (move_lines, 100))
SEALED: tuple[tuple[Tamper, int], ...] = ((seal_other_marks, 90), (seal_other_facts, 50))
OF_THE_REPORT: tuple[tuple[Tamper, int], ...] = ((flip, 150), (truncate, 50), (insert, 40), (other_number, 30))


def tampered(data: bytes, ways: tuple[tuple[Tamper, int], ...]) -> Iterator[tuple[str, bytes]]:
    draw = random.Random(19)
    for tamper, times in ways:
        for _ in range(times):
            while (found := tamper(data, draw)) == data:
                pass
            yield tamper.__name__, found


def is_refused(files: Passed, *, sha256: bool) -> bool:
    try:
        return not files.holds(sha256=sha256)
    except InputError:
        return True


@pytest.mark.usefixtures("memory")
def test_no_tampered_run_file_holds_where_its_hash_is_known(passed, tmp_path):
    assert passed.holds()
    data = passed.facts.read_bytes()
    forged = [*tampered(data, OF_THE_FILE), *tampered(data, SEALED)]
    held = [name for name, facts in forged if not is_refused(passed.copy(tmp_path, facts=facts), sha256=True)]
    assert (held, len(forged)) == ([], 650)


@pytest.mark.usefixtures("memory")
def test_no_other_facts_that_a_report_shows_give_the_same_report(passed, tmp_path):
    forged = list(tampered(passed.facts.read_bytes(), SEALED))
    held = [name for name, facts in forged if not is_refused(passed.copy(tmp_path, facts=facts), sha256=False)]
    assert held == []


@pytest.mark.usefixtures("memory")
def test_no_tampered_report_holds(passed, tmp_path):
    forged = list(tampered(passed.report.read_bytes(), OF_THE_REPORT))
    held = [name for name, report in forged if not is_refused(passed.copy(tmp_path, report=report), sha256=False)]
    assert held == []


def test_facts_that_no_report_shows_are_covered_by_the_hash(passed, tmp_path):
    lines = passed.facts.read_bytes().splitlines()
    at = places(lines, "output")[0]
    lines[at] = re.sub(rb'"at":"[^"]*"', b'"at":"2001-01-01T00:00:00.000Z"', lines[at])
    forged = passed.copy(tmp_path, facts=seal(lines))
    assert forged.holds(sha256=False)
    (said,) = forged.differences(sha256=True)
    assert re.fullmatch(rf"The SHA-256 of .*run\.jsonl is [0-9a-f]{{64}}, not {passed.sha256}\.", said)


def test_sealing_again_without_a_change_gives_the_same_bytes(passed):
    assert seal(passed.facts.read_bytes().splitlines()) == passed.facts.read_bytes()


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (
            lambda data: re.sub(rb'"macro_f1": [0-9.]+', b'"macro_f1": 0.5', data, count=1),
            r"`macro_f1`: the report says 0\.5, the facts give 0\.\d+\.",
        ),
        (
            lambda data: data.replace(b'"the shop is"', b'"the shop was"', 1),
            r"`executions\[2\]\.output`: the report says \"the shop was\", the facts give \"the shop is\"\.",
        ),
        (
            lambda data: data + b"\n",
            "The report has the same values as the facts give, but not the same bytes: another program wrote it.",
        ),
    ],
)
def test_difference_is_said_in_a_plain_sentence(passed, tmp_path, change, said):
    forged = passed.copy(tmp_path, report=change(passed.report.read_bytes()))
    (found,) = forged.differences()
    assert re.fullmatch(said, found)


def test_report_of_another_run_is_said(passed, tmp_path):
    with open_store(tmp_path / "runs.db") as store:
        dm.evaluate(dm.Dataset(samples(2), name="shop"), outputs=outputs(2), metrics=["rouge-l"], storage=store)
    other = pass_on(tmp_path / "runs.db", tmp_path)
    (said,) = passed._replace(report=other.report).differences()
    assert said.startswith("The report is of the run ")
    assert f"{passed.facts} holds " in said


def test_other_fingerprint_is_found_though_run_and_report_agree(passed, tmp_path):
    fingerprint = json.loads(passed.report.read_bytes())["dataset"]["fingerprint"].encode()
    lines = passed.facts.read_bytes().replace(fingerprint, b"0" * 64).splitlines()
    report = passed.report.read_bytes().replace(fingerprint, b"0" * 64)
    said = passed.copy(tmp_path, report=report, facts=seal(lines)).differences()
    assert said == ("The fingerprint of the dataset is not that of the samples in the run file.",)


def test_run_of_another_version_that_gives_another_report_names_that_version(passed, tmp_path):
    lines = [line.replace(b'"tool_version":"0.2.0"', b'"tool_version":"0.0.9"') for line in _lines(passed)]
    said = passed.copy(tmp_path, facts=seal(lines)).differences()
    assert said[-1].startswith("The run was made by deemster 0.0.9, and this is ")


def _lines(passed: Passed) -> list[bytes]:
    return passed.facts.read_bytes().splitlines()


def test_report_is_computed_with_what_it_shows_and_leaves_out(passed, tmp_path):
    files = pass_on(passed.facts.with_name("runs.db"), tmp_path, "latest", "--without-text")
    assert files.holds()
    assert files.report.read_bytes() != passed.report.read_bytes()


def test_report_of_an_earlier_version_without_inputs_follows_from_the_facts(passed, tmp_path):
    bare = re.sub(rb'"input":\{[^}]*\}', b'"input":null', passed.report.read_bytes())
    assert bare != passed.report.read_bytes()
    assert passed.copy(tmp_path, report=msgspec.json.format(bare, indent=2) + b"\n").holds()


@pytest.mark.parametrize("level", ["outputs", "expected", "all"])
def test_privacy_level_of_an_earlier_version_is_said_not_to_be_computed(passed, tmp_path, level):
    earlier = passed.report.read_bytes().replace(b'"level": "default"', f'"level": "{level}"'.encode())
    assert passed.copy(tmp_path, report=earlier).differences() == (
        f"An earlier version wrote it at the privacy level {level}, which is no longer computed.",
    )


def test_command_ends_with_0_1_or_2(passed, tmp_path):
    def verified(*argv: str) -> tuple[int, str]:
        done = CliRunner().invoke(app, ["store", "verify", *argv])
        return done.exit_code, done.stdout

    report, facts = str(passed.report), str(passed.facts)
    code, said = verified(report, facts, "--sha256", passed.sha256.upper())
    assert (code, said.splitlines()[1:]) == (
        0,
        [f"sha256: {passed.sha256}", "The report follows from the facts, byte for byte."],
    )
    assert verified(report, facts, "--sha256", "0" * 64)[0] == 1
    forged = passed.copy(tmp_path, report=passed.report.read_bytes() + b" ")
    assert verified(str(forged.report), facts)[0] == 1
    assert verified(report, facts, "--sha256", "ab") == (2, "")
    assert verified(report, str(tmp_path / "no.jsonl")) == (2, "")
    assert verified(str(tmp_path / "no.json"), facts) == (2, "")
    assert verified(facts, report) == (2, "")


def test_sha256_is_that_of_the_file(passed):
    assert passed.sha256 == hashlib.sha256(passed.facts.read_bytes()).hexdigest()


def test_same_run_gives_the_same_hash(passed, tmp_path):
    with open_store(passed.facts.with_name("runs.db")) as store:
        assert export_runs(store, [store.run("latest").id], tmp_path / "again.jsonl") == passed.sha256


@pytest.mark.parametrize("kind", ["part", "repeated", "rescored", "unscored", "judged by a custom metric"])
def test_reports_of_runs_of_every_kind_can_be_verified(tmp_path, kind):
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
        run = dm.evaluate(dataset, **arguments(where=store, max_unscored="100%", **settings)).run.id
    if kind == "rescored":
        flags = ["run", "--outputs", run, "--metric", "token-f1", "--store", str(tmp_path / "runs.db")]
        assert CliRunner().invoke(app, flags).exit_code == 0
    assert pass_on(tmp_path / "runs.db", tmp_path, run).holds()


def test_run_file_without_a_report_says_why(passed, tmp_path):
    with dm.Recorder("traffic", store=tmp_path / "runs.db") as recorder:
        recorder.record({"q": "x"}, "y")
    with open_store(tmp_path / "runs.db") as store:
        run = store.run("latest").id
        sha256 = export_runs(store, [run], tmp_path / "run.jsonl")
    own = json.loads(passed.report.read_bytes())["run"]["id"].encode()
    report = passed.report.read_bytes().replace(own, run.encode())
    (tmp_path / "report.json").write_bytes(report)
    (said,) = Passed(tmp_path / "report.json", tmp_path / "run.jsonl", sha256).differences()
    assert said.startswith("The facts give no report: ")
    assert "no scores" in said


def test_files_that_are_none_are_bad_input(passed, tmp_path):
    other = re.sub(rb'"score":0\.[0-9]+', b'"score":0.5', passed.facts.read_bytes(), count=1)
    with pytest.raises(StoreError, match="check sum does not fit"):
        passed.copy(tmp_path, facts=other).holds()
    with pytest.raises(ReportError, match="schema_version"):
        passed.copy(tmp_path, report=b"{}").holds()
