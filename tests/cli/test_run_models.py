"""`deemster run` with models: dry runs, cache, budgets, secrets, injection, and the same bytes at any pace."""

from __future__ import annotations

import json
import os
import re
import signal
from pathlib import Path

import pytest

from deemster.testing import ModelServer
from tests.builders.obedient_model import ObedientModel
from tests.cli.workspace import called, started, written
from tests.judges.injection_payloads import PAYLOADS

KEY = "sk-test-0123456789abcdefXYZ"
SUITE = """\
dataset: golden.json
target: { outputs: answers.json }
metrics: [contains, llm-as-judge]
models:
  judge:
    base_url: ${JUDGE_URL}
    model: toy-1
    api_key_env: TOY_KEY
    price: { input: 1, output: 2 }
    concurrency: ${PACE:-5-64}
    retries: 0
"""
FAR = "https://models.invalid/v1\n    model: toy-1\n    api_key_env: NO_SUCH_KEY"
REPORTS = ("--to", "r.json", "--to", "r.md", "--to", "r.csv", "--to", "r.html", "--to", "r.xml")
FURTHER = ("--to", "github:r.summary")


def files(cases, suite=SUITE):
    """A suite over cases: id to question, expected output and output."""
    samples = [
        {"id": name, "input": {"question": asked}, "expected_output": expected}
        for name, (asked, expected, _) in cases.items()
    ]
    outputs = {name: said for name, (_, _, said) in cases.items()}
    return {
        "suite.yml": suite,
        "golden.json": json.dumps({"name": "d", "samples": samples}),
        "answers.json": json.dumps({"outputs": outputs}),
    }


def plain(count):
    return {f"s{number}": (f"Question {number}?", f"word{number}", f"It is word{number}.") for number in range(count)}


def fitting(messages):
    """A verdict that depends on nothing but the case."""
    text = messages[-1]["content"]
    return json.dumps({"reason": f"Of {len(text)} characters.", "score": (sum(text.encode()) % 11) / 10})


@pytest.fixture
def server():
    with ModelServer(answer=fitting) as server:
        yield server


@pytest.fixture
def folder(folder, monkeypatch, server):
    monkeypatch.setenv("JUDGE_URL", server.url)
    monkeypatch.setenv("TOY_KEY", KEY)
    written(folder, files(plain(6)))
    return folder


def report_of(*flags, code=0, **env):
    result = called("run", "suite.yml", "--to", "r.json", *flags, **env)
    assert result.exit_code == code, result.output
    return json.loads(Path("r.json").read_text())


def whole(folder, *flags):
    """A run in a process of its own, which it ends: its exit code and both streams."""
    process = started(folder, "run", "suite.yml", *flags)
    out, err = process.communicate(timeout=180)
    return process.returncode, out, err


def planned(*flags):
    """What `check` says of the requests that a run of the suite sends."""
    result = called("check", "suite.yml", "--offline", *flags)
    assert result.exit_code == 0, result.output
    return result.stdout.partition("\n")[2]


def test_check_counts_requests_without_sending_them(folder, server, monkeypatch):
    monkeypatch.delenv("TOY_KEY")
    text = planned()
    assert server.requests == []
    assert text.startswith("judge: 6 to 12 requests, about ")
    assert "at most 12,288 received, about $0.0" in text
    assert sorted(path.name for path in folder.iterdir()) == ["answers.json", "golden.json", "suite.yml"]


def test_planned_cost_is_not_below_actual_cost(folder, server):
    calls, cost = re.match(r"judge: (\d+) to 12 requests, .* about \$([0-9.]+) to", planned()).groups()
    report = report_of()
    assert (int(calls), len(server.requests)) == (6, 6)
    assert report["cost"]["total_usd"] <= float(cost)


def test_check_counts_only_uncached_requests(folder, server):
    report_of()
    assert planned() == "No model would be asked.\n"
    assert planned("--cache", "none").startswith("judge: 6 to 12 requests")


def test_check_counts_a_question_that_two_metrics_ask_once(folder):
    written(folder, {"suite.yml": SUITE.replace("llm-as-judge]", "llm-as-judge, {llm-as-judge: {name: other}}]")})
    assert planned().startswith("judge: 6 to 12 requests, ")


def test_check_of_one_sample_counts_its_repeated_question(folder):
    written(folder, files(plain(1)))
    assert planned().startswith("judge: 1 to 2 requests, ")


def test_second_run_is_answered_from_cache_for_free(folder, server):
    first = report_of()
    second = report_of()
    assert len(server.requests) == 6
    assert (first["usage"]["scoring"]["calls"], first["usage"]["scoring"]["cached_calls"]) == (6, 0)
    assert (second["usage"]["scoring"]["calls"], second["usage"]["scoring"]["cached_calls"]) == (0, 6)
    assert first["cost"]["total_usd"] > 0
    assert not (second["cost"] or {}).get("total_usd")
    assert second["metrics"]["llm-as-judge"]["mean"] == first["metrics"]["llm-as-judge"]["mean"]


def test_without_cache_every_run_asks_again(folder, server):
    report_of("--cache", "none", "--store", "none")
    report_of("--cache", "none", "--store", "none")
    assert len(server.requests) == 12
    assert not (folder / ".deemster").exists()


def test_cache_path_can_be_set(folder, server):
    report_of("--cache", "kept/answers.jsonl", "--store", "none")
    assert (folder / "kept" / "answers.jsonl").is_file()
    assert not (folder / ".deemster").exists()


def test_additional_repetition_asks_only_new_questions(folder, server):
    report_of()
    report_of("--repetitions", "2")
    assert len(server.requests) == 12


def test_offline_unrecorded_question_is_bad_input(folder, server):
    result = called("run", "suite.yml", "--offline")
    assert result.exit_code == 2
    assert "`judge` needs the network, and this run is offline" in result.stderr
    assert server.requests == []
    report_of()
    assert report_of("--offline")["run"]["status"] == "complete"
    assert len(server.requests) == 6


@pytest.mark.parametrize("flags", [("--budget", "5000tokens"), ("--budget", "0.006usd")])
def test_exceeded_budget_is_exit_code_3_with_partial_report(folder, server, flags):
    code, out, err = whole(folder, "--to", "r.json", *flags)
    report = json.loads((folder / "r.json").read_text())
    assert code == 3
    assert "The budget is exhausted" in err
    assert out.startswith("Incomplete: ")
    assert "The budget stopped the run" in called("show", "latest", "--full").stdout
    scored = report["metrics"]["llm-as-judge"]["n_scored"]
    assert 1 <= scored == len(server.requests) < 6
    assert report["budget"]["halted"] is True
    assert report["budget"]["completed"] == scored
    assert report["run"]["status"] == "incomplete"
    refused = called("baseline", "latest")
    assert refused.exit_code == 2
    assert "cannot become the baseline: a budget stopped it" in refused.stderr
    # Answers that were paid for are not requested again.
    assert called("run", "suite.yml", "--to", "r.json").exit_code == 0
    assert len(server.requests) == 6


def test_budget_in_money_needs_prices(folder, server):
    written(folder, {"suite.yml": SUITE.replace("    price: { input: 1, output: 2 }\n", "")})
    result = called("run", "suite.yml", "--budget", "1usd")
    assert result.exit_code == 2
    assert "needs a price for `models.judge`" in result.stderr
    assert server.requests == []


@pytest.mark.parametrize(
    ("change", "code", "said"),
    [
        (
            ("${JUDGE_URL}\n    model: toy-1\n    api_key_env: TOY_KEY", FAR),
            2,
            "suite.yml:8: The environment has no var",
        ),
        (("base_url", "base_ulr"), 2, "Did you mean `base_url`?"),
        (("  judge:", "  jugde:"), 2, "Did you mean `jugde`?"),
        (("concurrency: ${PACE:-5-64}", "concurrency: many"), 2, "a range such as `5-64`"),
        (("metrics:", "gate: { min_macro_f1: 1 }\nmetrics:"), 1, ""),
        (("metrics:", "gate: { min_macro_f1: 0 }\nmetrics:"), 0, ""),
    ],
)
def test_exit_codes_of_a_run_with_models(folder, change, code, said):
    written(folder, {"suite.yml": SUITE.replace(*change)})
    result = called("run", "suite.yml")
    assert result.exit_code == code, result.output
    assert said in result.stderr


def test_failed_model_makes_run_incomplete(folder, server):
    server.play(["401"])
    server.answer = lambda messages: "7/10" if "word3" in messages[-1]["content"] else fitting(messages)
    report = report_of(code=3, PACE="1")
    assert report["totals"]["unscored"] == 2
    causes = {failure["cause"] for failure in report["failures"]}
    assert causes == {"model_failed", "unreadable"}


def test_key_repeated_by_server_is_in_no_file_or_output(folder, server):
    suite = SUITE.replace("    retries: 0\n", "    retries: 0\n    record: recorded.jsonl\n")
    written(folder, files(plain(6), suite))
    address = server.url.replace("http://", "http://me:pass-word-1234@") + "?sig=query-secret-1"
    echo = json.dumps({"reason": f"The key {KEY} is right.", "score": 0.5})
    server.play(["401", f"text={echo}", "403", f"text={KEY}", f"text={KEY}", "reset"])
    result = called("run", "suite.yml", *REPORTS, *FURTHER, JUDGE_URL=address, PACE="1")
    assert result.exit_code == 3
    assert server.requests[0].headers["authorization"] == f"Bearer {KEY}"
    names = {path.name: path.read_bytes() for path in folder.rglob("*") if path.is_file()}
    assert {"r.json", "r.md", "r.csv", "r.html", "r.xml", "r.summary", "recorded.jsonl", "answers.jsonl"} <= set(names)
    assert b"[removed]" in names["r.json"]
    everything = b"".join([*names.values(), result.stdout.encode(), result.stderr.encode()])
    for secret in (KEY, KEY[3:], "pass-word-1234", "query-secret-1"):
        assert secret.encode() not in everything


def test_payloads_in_output_question_and_reference_change_no_mark(tmp_path, monkeypatch):
    fine = ("A question", "a reference", "an output")
    spots = {"asked": 0, "expected": 1, "said": 2}
    cases = {
        f"{spot}-{number}": tuple(payload if place == at else text for place, text in enumerate(fine))
        for spot, at in spots.items()
        for number, payload in enumerate(PAYLOADS)
    }
    assert len(PAYLOADS) >= 60
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("TOY_KEY", KEY)
    obedient = ObedientModel(honest=0.25)
    with ModelServer(answer=obedient) as server:
        monkeypatch.setenv("JUDGE_URL", server.url)
        written(tmp_path, files({"plain": fine}))
        report_of("--cache", "none")
        structure = [message["role"] for message in server.requests[0].document["messages"]]
        for message in server.requests[0].document["messages"]:
            obedient.learn(message["content"])
        obedient.obeyed.clear()
        server.forget()
        written(tmp_path, files(cases))
        report = report_of("--cache", "none", "--metric", "llm-as-judge")
        asked = [[message["role"] for message in request.document["messages"]] for request in server.requests]
    assert obedient.obeyed == []
    assert asked == [structure] * len(asked)
    marks = {entry["id"]: entry["marks"]["llm-as-judge"] for entry in report["executions"]}
    assert len(marks) == 3 * len(PAYLOADS)
    assert {name: mark.get("score") for name, mark in marks.items()} == dict.fromkeys(marks, 0.25)


def test_report_bytes_are_same_at_any_concurrency(folder, server):
    metrics = "[contains, llm-as-judge, {llm-as-judge: {name: panel, samples: 3}}, refusal-quality: {where: auto}]"
    suite = SUITE.replace("[contains, llm-as-judge]", metrics) + "limits: { concurrency: ${PACE} }\n"
    written(folder, files(plain(25), suite))
    found = []
    for pace in ("1", "7", "64"):
        written(
            folder,
            {"suite.yml": suite.replace("limits: { concurrency: ${PACE} }", f"limits: {{ concurrency: {pace} }}")},
        )
        result = called(
            "run", "suite.yml", "--cache", "none", "--store", f"{pace}.db", "--to", "r.json", "--quiet", PACE=pace
        )
        assert result.exit_code in (0, 3), result.output
        found.append((folder / "r.json").read_bytes())
    assert found[0] == found[1] == found[2]
    assert json.loads(found[0])["run"]["duration_s"] == 0


def test_interrupt_stops_requests_and_reports_answers(tmp_path):
    cases = plain(200)

    def answer(messages):
        if len(server.requests) == 3:
            os.kill(process.pid, signal.SIGINT)
        return fitting(messages)

    with ModelServer(answer=answer) as server:
        written(tmp_path, files(cases))
        env = {"JUDGE_URL": server.url, "TOY_KEY": KEY, "PACE": "1"}
        process = started(tmp_path, "run", "suite.yml", "--to", "-", env=env)
        out, err = process.communicate(timeout=180)
    report = json.loads(out)
    assert process.returncode == 3
    assert "SIGINT" in err
    assert len(server.requests) < 50
    assert 1 <= report["metrics"]["llm-as-judge"]["n_scored"] <= len(server.requests)
    assert report["run"]["status"] == "incomplete"


def test_progress_goes_to_standard_error_with_tokens_and_limits(folder, monkeypatch):
    monkeypatch.setattr("deemster.cli._console._SECONDS_BETWEEN_LINES", 0.0)
    result = called("run", "suite.yml", "--cache", "none")
    (line, *_) = [line for line in result.stderr.splitlines() if " done, " in line][-1:]
    assert line.startswith("6 of 6 done, 0 unscored, ")
    assert " tokens, $0.00" in line
    assert re.search(r", judge \d+/\d+$", line)


@pytest.mark.parametrize("budget", ["2", "2 usd", "2eur", "-1usd", "1.5tokens", "usd", "nanusd"])
def test_budget_is_dollars_or_tokens(world, budget):
    world()
    result = called("run", "suite.yml", f"--budget={budget}")
    assert result.exit_code == 2
    assert f"`{budget}` is no budget: give dollars or tokens, 2usd or 50000tokens." in result.stderr


def test_command_that_fills_a_store_refuses_none(world):
    world()
    called("run", "suite.yml", "--quiet")
    called("export", "latest", "--to", "run.jsonl")
    result = called("import", "run.jsonl", "--store", "none")
    assert result.exit_code == 2
    assert "`--store none` is for a run that is not kept; this reads or writes a store." in result.stderr
    assert not Path("none").exists()
