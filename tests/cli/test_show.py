"""`deemster show`: one sample whole, with the traceback of its target and what its judges were asked."""

from __future__ import annotations

import contextlib
import re
import sqlite3

import pytest

from tests.cli.workspace import called, written

APP = """\
from deemster.records import Answer


def find(question):
    return {"How long?": "30 days", "Which fee?": "ten euros"}[question]


def answer(input):
    return find(input["question"])


class Judge:
    identity = {"model": "toy"}

    async def complete(self, ask):
        good = "30 days" in ask.messages[-1].content
        score = 1.0 if good else 0.1
        return Answer(text='{"reason": "As I see it.", "score": %s}' % score, model="toy-1")


judge = Judge()
"""
SUITE = """\
name: refunds
dataset: golden.yml
target: { python: "APP:answer" }
metrics: [exact-match, llm-as-judge]
models:
  judge: { client: "APP:judge" }
"""
GOLDEN = """\
name: support
samples:
  - { id: window, input: { question: How long? }, expected_output: 30 days }
  - { id: fee, input: { question: Which fee? }, expected_output: none }
  - { id: where, input: { question: Where to? }, expected_output: to us }
  - { id: whom, input: { question: Where to? }, expected_output: to us }
"""


@pytest.fixture
def folder(folder, monkeypatch, request):
    monkeypatch.syspath_prepend(folder)
    # A module is loaded once in a process, and each test has its own folder.
    name = f"app_{abs(hash(request.node.name))}"
    written(folder, {f"{name}.py": APP, "suite.yml": SUITE.replace("APP", name), "golden.yml": GOLDEN})
    return folder


def ran(*flags):
    return called("run", "suite.yml", "--quiet", *flags)


def keep_prompts(folder, which):
    suite = folder / "suite.yml"
    suite.write_text(f"keep_prompts: {which}\n{suite.read_text()}")


def steady(text):
    """What is shown, without what differs from machine to machine and between versions of Python."""
    # A long path is folded, and how long it is depends on the folder of the test.
    text = re.sub(r'File\s+"[^"]*",\s+line\s+(\d+),\s+in\s+', r'File "app.py", line \1, in ', text)
    text = re.sub(r"app_\d+\.py", "app.py", text)
    text = re.sub(r"(question|expected_output|actual_output) [0-9a-f]{16}", r"\1 CODE", text)
    text = re.sub(r"\b[0-9a-f]{16}\b", "CODE", text)
    text = re.sub(r"20\d{6}T\d{6}Z-[0-9a-f]{6}", "RUN", text)
    lines = [line.rstrip() for line in text.splitlines()]
    return "\n".join(line for line in lines if not re.fullmatch(r"\s*[~^]+", line)) + "\n"


def test_target_that_raised_is_shown_with_its_whole_traceback(folder, golden):
    ran()
    golden("cli/show-traceback.txt", steady(called("show", "latest", "where").stdout))


def test_prompt_and_reply_of_a_judge_that_did_not_pass_are_shown(folder, golden):
    ran()
    golden("cli/show-prompts.txt", steady(called("show", "latest", "fee", "--prompts").stdout))


def test_prompts_are_shown_only_where_they_are_asked_for(folder):
    ran()
    assert "careful examiner" not in called("show", "latest", "fee").stdout
    assert "careful examiner" not in called("show", "latest", "window", "--prompts").stdout
    assert "`keep_prompts: all` in the suite keeps all." in called("show", "latest", "window", "--prompts").stdout


def test_keep_prompts_all_keeps_those_of_marks_that_passed(folder):
    keep_prompts(folder, "all")
    ran()
    assert "careful examiner" in called("show", "latest", "window", "--prompts").stdout


@pytest.mark.parametrize("is_asked_for", [True, False])
def test_run_without_prompts_says_so(folder, is_asked_for):
    if is_asked_for:
        keep_prompts(folder, "none")
    ran()
    if not is_asked_for:
        # As the schema before this one left it.
        with contextlib.closing(sqlite3.connect(".deemster/runs.db")) as older:
            older.executescript("DROP TABLE prompts; PRAGMA user_version = 2;")
    shown = called("show", "latest", "fee", "--prompts").stdout
    assert ("This run did not keep its prompts." in shown) == is_asked_for
    assert "careful examiner" not in shown


def test_without_text_leaves_out_traceback_and_refuses_prompts(folder):
    ran()
    assert "Traceback" not in called("show", "latest", "where", "--without-text").stdout
    refused = called("show", "latest", "fee", "--prompts", "--without-text")
    assert (refused.exit_code, "does not go with `--without-text`" in refused.stderr) == (2, True)


def test_report_file_has_neither(folder):
    ran("--to", "r.json")
    assert "Traceback" not in (folder / "r.json").read_text(encoding="utf-8")
    assert "Traceback" not in called("show", "r.json", "where").stdout
    refused = called("show", "r.json", "fee", "--prompts")
    assert (refused.exit_code, refused.stderr.strip()) == (
        2,
        "error: A report file holds no prompts: name a stored run.",
    )


def test_verbose_prints_each_distinct_traceback_once(folder):
    result = ran("--verbose", "--store", "none")
    assert result.stderr.count("Traceback (most recent call last):") == 1
    assert "2 times, such as for the sample where:" in result.stderr
    assert "KeyError: 'Where to?'" in result.stderr.split("Traceback")[1]
    assert "Traceback" not in ran().stderr


def test_verbose_prints_no_traceback_where_messages_are_left_out(folder):
    result = ran("--verbose", "--without-text")
    assert "Traceback" not in result.stderr
    assert "`--without-text` leaves out tracebacks too." in result.stderr


def test_only_lists_the_samples_that_are_meant_worst_first(folder):
    golden = GOLDEN.replace("id: window,", "id: window, metadata: { lang: de, tags: [time] },").replace(
        "id: fee,", "id: fee, metadata: { lang: de },"
    )
    written(folder, {"golden.yml": golden})
    assert called("run", "suite.yml", "--quiet", "--to", "run.json").exit_code == 3

    done = called("show", "latest", "--only", "lang=de")
    title, summary, _, *rows = done.stdout.splitlines()
    assert (title, summary) == ("Samples, worst first", "2 of 4 samples, --only lang=de: 1 passed.")
    assert [row.split() for row in rows] == [["fee", "no", "0.00", "0.10"], ["window", "yes", "1.00", "1.00", "time"]]
    assert done.stderr == "Next: deemster show latest fee\n"

    assert [line.split()[0] for line in called("show", "run.json", "--only", "failed").stdout.splitlines()[3:]] == [
        "where",
        "whom",
        "fee",
    ]
    assert "1 of 4 samples, --only tag:time --only answered: 1 passed." in " ".join(
        called("show", "latest", "--only", "answered", "--only", "tag:time").stdout.split()
    )
    assert called("show", "latest", "--only", "tag:time", "--only", "failed").stdout.splitlines()[1:] == [
        "0 of 4 samples, --only failed --only tag:time: 0 passed."
    ]


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("--only", "tag:x"), "`--only` lists samples of one run"),
        (("latest", "fee", "--only", "tag:x"), "`--only` lists samples of one run"),
        (("latest", "--only", "tag:x", "--to", "run.json"), "`--only` lists samples of one run"),
        (("latest", "--only", "id:fe"), "Did you mean `fee`?"),
        (("latest", "--only", "failed:other"), "failed in the run that is shown"),
    ],
)
def test_only_of_another_kind_is_bad_input(folder, words, message):
    called("run", "suite.yml", "--quiet")
    done = called("show", *words)
    assert done.exit_code == 2
    assert message in done.stderr
