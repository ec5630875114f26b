"""Metrics with `where` on the command line: what is not applicable, in every report, store and command."""

from __future__ import annotations

import csv
import json
import re
from io import StringIO
from pathlib import Path
from xml.etree import ElementTree as ET

import pytest

from deemster.comparison.report_loader import load_report
from deemster.report.stored_report import stored_report
from deemster.store import open_store
from deemster.testing import ModelServer
from tests.cli.workspace import called, report_of, started, written

GOLDEN = """\
name: support
samples:
  - id: window
    input: { question: How long? }
    expected_output: 30 days
    metadata: { tags: [policy], citations: ["[1]"] }
  - id: frist
    input: { question: Wie lange? }
    expected_output: 30 Tage
    metadata: { tags: [policy], lang: de }
  - id: fee
    input: { question: What fee? }
    expected_output: none
    metadata: { tags: [money], citations: ["[2]", "[3]"] }
  - id: hello
    input: { question: Hello! }
    expected_output: null
    metadata: { tags: [smalltalk], lang: de }
"""
ANSWERS = 'outputs: { window: "30 days [1]", frist: 30 Tage, fee: "ten euros [2]", hello: Hi }\n'
SUITE = """\
name: refunds
dataset: golden.yml
target: { outputs: answers.yml }
metrics:
  - contains: { where: { has: expected_output } }
  - citation-groundedness: { where: auto, threshold: 0.9 }
  - length-within: { max: 20, name: short-german, where: { tags: [policy, smalltalk], metadata: { lang: de } } }
"""
REPORTS = {"json": "r.json", "md": "r.md", "csv": "r.csv", "html": "r.html", "junit": "r.xml"}
FLAGS = [word for file in REPORTS.values() for word in ("--to", file)]


@pytest.fixture
def where_world(world):
    return world(golden_yml=GOLDEN, answers_yml=ANSWERS, suite_yml=SUITE)


def refused(suite, folder, command="check"):
    written(folder, {"suite.yml": suite})
    result = called(command, "suite.yml")
    assert result.exit_code == 2, result.output
    return result.stderr


def test_every_report_counts_and_shows_what_is_not_applicable(where_world, golden):
    result = called("run", "suite.yml", "--full", *FLAGS, COLUMNS="120")
    assert result.exit_code == 0, result.output
    golden("cli/run-where.txt", result.stdout)
    golden("cli/run-where.md", Path("r.md").read_text())
    report = json.loads(Path("r.json").read_text())
    assert (report["totals"]["marks"], report["totals"]["not_applicable"]) == (7, 5)
    assert report["totals"]["samples_not_applicable"] == 0
    counts = {name: (each["n"], each["n_not_applicable"]) for name, each in report["metrics"].items()}
    assert counts == {"contains": (3, 1), "citation-groundedness": (2, 2), "short-german": (2, 2)}
    assert report["metrics"]["citation-groundedness"]["where"] == {
        "tags": [],
        "has": ["citations|citation_evidence"],
        "metadata": {},
        "auto": True,
    }
    cohorts = {cohort["label"]: cohort for cohort in report["cohorts"]}
    assert cohorts["smalltalk"]["metrics"]["contains"]["pass_rate"] is None
    assert cohorts["smalltalk"]["macro_f1_metrics"] == ["short-german"]
    assert [list(entry["marks"]) for entry in report["executions"]] == [
        ["citation-groundedness", "contains"],
        ["contains", "short-german"],
        ["citation-groundedness", "contains"],
        ["short-german"],
    ]
    rows = list(csv.DictReader(StringIO(Path("r.csv").read_text())))
    assert len(rows) == 12
    assert [row["metric"] for row in rows if row["sample_id"] == "hello" and row["cause"] == "not_applicable"] == [
        "contains",
        "citation-groundedness",
    ]
    suite = ET.parse("r.xml").getroot()[1]
    assert (suite.get("tests"), suite.get("skipped")) == ("12", "7")
    assert len(suite.findall("testcase/skipped[@message='not applicable']")) == 5
    assert "not applicable" in Path("r.html").read_text()
    frame = load_report("r.json").to_dataframe()
    assert (frame["cause"] == "not_applicable").sum() == 5
    assert called("show", "latest", "hello").stdout.count(": not applicable, outside its `where`") == 2
    assert re.search(r"short-german .* 2 +0 +2\n", called("show", "latest", "--full").stdout)


def test_stored_run_shows_the_same_bytes_again(where_world):
    called("run", "suite.yml", *FLAGS)
    for flag, file in REPORTS.items():
        assert called("show", "latest", "--to", f"{flag}:-").stdout == Path(file).read_text(), flag
    assert called("show", "r.json", "--to", "-").stdout == Path("r.json").read_text()
    exported = called("export", "latest", "--to", "run.jsonl")
    assert exported.exit_code == 0, exported.output
    assert called("import", "run.jsonl", "--store", "other.db").exit_code == 0
    assert called("show", "latest", "--store", "other.db", "--to", "csv:-").stdout == Path("r.csv").read_text()


def test_validate_says_how_many_samples_a_metric_applies_to(where_world):
    found = called("check", "suite.yml")
    assert (found.exit_code, found.stderr) == (0, "")
    assert found.stdout == (
        "suite.yml: suite `refunds`, 4 samples x 1, 3 metrics, 0 gate rules; contains applies to 3 of 4 samples; "
        "citation-groundedness applies to 2 of 4 samples; short-german applies to 2 of 4 samples\n"
    )


def test_validate_counts_for_metrics_that_read_metadata_without_where(where_world):
    metrics = "metrics: [contains, citation-groundedness]\n"
    written(where_world, {"suite.yml": SUITE.partition("metrics:")[0] + metrics})
    found = called("check", "suite.yml")
    assert "citation-groundedness: 2 of 4 samples will be unscored" in found.stderr
    assert found.stdout.endswith("; citation-groundedness applies to 2 of 4 samples\n")


@pytest.mark.parametrize("command", ["check", "run"])
def test_metric_that_applies_nowhere_is_refused_unless_it_is_left_out_on_purpose(where_world, command):
    suite = SUITE.partition("metrics:")[0]
    written(where_world, {"suite.yml": f"{suite}metrics: [contains, ndcg, tool-called]\n"})
    refused = called(command, "suite.yml")
    assert refused.exit_code == 2
    assert "retrieval-ndcg-at-k can score none of the 4 samples" in refused.stderr
    assert "tool-called can score none of the 4 samples" in refused.stderr

    written(where_world, {"suite.yml": f"{suite}metrics: [contains, {{ ndcg: {{ where: auto }} }}]\n"})
    left_out = called(command, "suite.yml")
    assert left_out.exit_code != 2
    assert "warning: retrieval-ndcg-at-k applies to none of the 4 samples.\n" in left_out.stderr


@pytest.mark.parametrize(
    ("where", "message"),
    [
        (
            "{ tags: polcy }",
            "suite.yml:5: `where` of `contains`: No sample has the tag `polcy`. Did you mean `policy`?",
        ),
        ("{ has: citation }", "No sample has `metadata.citation`. Did you mean `metadata.citations`?"),
        ("{ metadata: { lang: ed } }", "No sample has `ed` as its `metadata.lang`. Known: `de`."),
        ("{ metadata: { lnag: de } }", "No sample has `metadata.lnag`. Did you mean `metadata.lang`?"),
        ("{ tags: money, has: lang }", "No sample fits all of it: tag money; has lang."),
        ("{ tag: policy }", "suite.yml:5: `where` of `contains` has no key 'tag'. Did you mean `tags`?"),
        ("often", "`where` of `contains` is `auto` or a map with `tags`, `has` or `metadata`, not 'often'."),
        ("{}", "`where` of `contains` is empty."),
        ("{ tags: [1] }", "`tags` in `where` of `contains` is text or a list of texts, such as `policy`."),
        ("{ metadata: [lang] }", "`metadata` in `where` of `contains` is a map of keys to values"),
        ("{ metadata: { lang: { a: b } } }", "maps 'lang' to a value or a list of values, not to a map."),
    ],
)
def test_where_that_cannot_be_used_is_named_with_the_nearest(where_world, where, message):
    said = refused(SUITE.replace("{ has: expected_output }", where), where_world)
    assert message in re.sub(r"\s+", " ", said)


def test_auto_that_applies_nowhere_is_undefined_and_macro_f1_leaves_it_out(where_world):
    suite = SUITE.replace("citation-groundedness: { where: auto, threshold: 0.9 }", "ndcg: { where: auto, name: ndcg }")
    written(where_world, {"suite.yml": suite + "gate: { metrics: { ndcg: { min_pass_rate: 0.1 } } }\n"})
    result = called("run", "suite.yml", "--full", "--to", "r.json")
    assert "ndcg applies to none of the 4 samples." in result.stderr
    assert "It rests on 2 of 3 metrics; these apply to no sample: ndcg." in result.stdout
    report = json.loads(Path("r.json").read_text())
    figures = report["metrics"]["ndcg"]
    assert (figures["n"], figures["mean"], figures["pass_rate"], figures["pass_rate_interval"]) == (0, None, None, None)
    assert report["macro_f1_metrics"] == ["contains", "short-german"]
    # A whole run that measures nothing does not reach what is required.
    assert (result.exit_code, report["gate"]["checks"][0]["status"]) == (1, "fail")


def test_part_without_an_applicable_sample_skips_the_rule(where_world):
    gate = "gate: { min_macro_f1: 0.5, metrics: { citation-groundedness: { min_pass_rate: 0.1 } } }\n"
    written(where_world, {"suite.yml": SUITE + gate})
    report = report_of("--only", "tag:smalltalk")
    assert {check["name"]: check["status"] for check in report["gate"]["checks"]} == {
        "min_macro_f1": "pass",
        "metrics.citation-groundedness.min_pass_rate": "skipped",
    }
    assert report["macro_f1_metrics"] == ["short-german"]


def test_part_that_no_metric_applies_to_has_no_numbers(where_world):
    written(where_world, {"suite.yml": SUITE.replace("  - length-within", "  # length-within")})
    result = called("run", "suite.yml", "--only", "tag:smalltalk", "--to", "r.json")
    assert result.exit_code == 0, result.output
    report = json.loads(Path("r.json").read_text())
    assert (report["macro_f1"], report["pass_rate"], report["samples"][0]["pass_rate"]) == (None, None, None)
    assert result.stdout.startswith("No gate. No metric applies to any sample.\n")
    assert "1 sample that no metric applies to" in called("show", "latest", "--full").stdout
    assert "Macro-F1 (avg pass-rate across all metrics): n/a" in called("show", "latest", "--full").stdout
    assert "no metric applies" in called("show", "latest", "hello").stdout


def test_sample_with_no_failing_applicable_metric_did_not_fail(where_world):
    report_of()
    again = report_of("--only", "failed")
    assert [sample["id"] for sample in again["samples"]] == ["fee"]


def test_resuming_with_another_where_is_refused_even_with_allow_changed(where_world):
    report_of()
    written(where_world, {"suite.yml": SUITE.replace("[policy, smalltalk]", "[policy]")})
    result = called("run", "suite.yml", "--resume", "--allow-changed")
    assert result.exit_code == 2
    said = re.sub(r"\s+", " ", result.stderr)
    assert "`short-german` has another `where`, and applies to other samples." in said


LIVE = SUITE.replace("{ outputs: answers.yml }", "{ python: 'where_app:answer' }") + "limits: { concurrency: 1 }\n"
APP = """\
import time
from pathlib import Path

def answer(invocation):
    if invocation.id == "frist" and not Path("ready").exists():
        time.sleep(60)
    return {"window": "30 days [1]", "frist": "30 Tage", "fee": "ten euros [2]", "hello": "Hi"}[invocation.id]
"""


def test_stopped_run_knows_what_is_not_applicable_before_it_is_run(where_world):
    written(where_world, {"suite.yml": LIVE, "where_app.py": APP})
    process = started(where_world, "run", "suite.yml", "--timeout", "0.2", "--to", "r.json", "--quiet")
    _, said = process.communicate(timeout=180)
    assert process.returncode == 3, said
    stopped = json.loads(Path("r.json").read_text())
    totals = {name: stopped["totals"][name] for name in ("marks", "scored", "not_run", "not_applicable")}
    assert totals == {"marks": 7, "scored": 2, "not_run": 5, "not_applicable": 5}
    assert [sample["not_applicable"] for sample in stopped["samples"]] == [
        ["short-german"],
        ["citation-groundedness"],
        ["short-german"],
        ["contains", "citation-groundedness"],
    ]
    assert json.loads(called("show", "latest", "--to", "-").stdout) == stopped
    Path("ready").touch()
    process = started(where_world, "run", "suite.yml", "--resume", "--to", "-", "--quiet")
    shown, said = process.communicate(timeout=180)
    assert process.returncode == 0, said
    resumed = json.loads(shown)
    assert (resumed["totals"]["scored"], resumed["totals"]["not_applicable"]) == (7, 5)


def test_rescoring_takes_where_from_a_suite(where_world):
    report_of()
    more = "metrics:\n  - starts-with: { where: { tags: money } }\n  - contains: { where: { tags: policy } }\n"
    written(where_world, {"more.yml": more})
    result = called("run", "more.yml", "--outputs", "latest", "--to", "-")
    assert result.exit_code == 0, result.output
    figures = json.loads(result.stdout)["metrics"]
    assert {name: (each["n"], each["n_not_applicable"]) for name, each in figures.items()} == {
        "contains": (2, 2),
        "citation-groundedness": (2, 2),
        "short-german": (2, 2),
        "starts-with": (1, 3),
    }


def test_parquet_has_a_row_for_what_is_not_applicable(where_world):
    parquet = pytest.importorskip("pyarrow.parquet")
    report_of()
    result = called("export", "latest", "--to", "tables.parquet")
    assert result.exit_code == 0, result.output
    causes = parquet.read_table("tables.parquet/marks.parquet").column("cause").to_pylist()
    assert causes.count("not_applicable") == 5


JUDGED = """\
name: judged
dataset: golden.yml
target: { outputs: answers.yml }
metrics: [contains, { llm-as-judge: { where: { tags: policy } } }]
models: { judge: { base_url: "URL", model: toy-1, price: { input: 1, output: 2 }, retries: 0 } }
"""


def test_judge_is_not_asked_about_samples_outside_and_nothing_is_paid(where_world):
    with ModelServer(answer=lambda _: json.dumps({"reason": "Fine.", "score": 1.0})) as server:
        written(where_world, {"suite.yml": JUDGED.replace("URL", server.url)})
        planned = called("check", "suite.yml", "--offline")
        assert planned.exit_code == 0, planned.output
        assert "judge: 2 to 4 requests" in planned.stdout
        assert not server.requests
        report = report_of()
        assert len(server.requests) == 2
    assert report["usage"]["by_metric"]["llm-as-judge"]["calls"] == 2
    assert (report["metrics"]["llm-as-judge"]["n_scored"], report["metrics"]["llm-as-judge"]["n_not_applicable"]) == (
        2,
        2,
    )


def test_runs_of_yesterday_without_where_open_and_list(where_world):
    report_of()
    with open_store(".deemster/runs.db") as store:
        row = store.run("latest")
        assert [card.where is None for card in row.scorings[0].cards] == [False, False, False]
        metrics = stored_report(store, row.id).metrics.values()
        assert [figures.n_not_applicable for figures in metrics] == [1, 2, 2]
