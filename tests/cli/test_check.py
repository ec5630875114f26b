"""`deemster check`: one file, several files, directories."""

from __future__ import annotations

import io

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from deemster.cli.init import TEMPLATES
from tests.cli.workspace import FILES, GOLDEN, SUITE, called, written

SCHEMA = "schema_version: deemster.dataset.v1\n"


def checked(*argv: str) -> tuple[int, list[str]]:
    """The exit code, and the files that are valid."""
    done = called("check", *argv)
    return done.exit_code, [line.partition(": ")[0] for line in done.stdout.splitlines()]


def _parquet(columns: dict[str, list[str]]) -> bytes:
    sink = io.BytesIO()
    pq.write_table(pa.table(columns), sink)
    return sink.getvalue()


@pytest.mark.parametrize(
    ("file", "start"),
    [
        ("golden.yml", "golden.yml: dataset `support`, 2 samples, 1 tag; fingerprint "),
        ("suite.yml", "suite.yml: suite `refunds`, 2 samples x 1, 1 metric, 0 gate rules"),
        ("answers.yml", "answers.yml: saved outputs of 2 samples, 1 repetition"),
        ("answers.jsonl", "answers.jsonl: saved outputs of 1 sample, 1 repetition"),
        ("golden.jsonl", "golden.jsonl: dataset `golden`, 1 sample, 0 tags; fingerprint "),
        ("golden.ndjson", "golden.ndjson: dataset `golden`, 1 sample, 0 tags; fingerprint "),
        ("golden.csv", "golden.csv: dataset `golden`, 1 sample, 0 tags; fingerprint "),
        ("answers.csv", "answers.csv: saved outputs of 1 sample, 1 repetition"),
        ("golden.parquet", "golden.parquet: dataset `golden`, 1 sample, 0 tags; fingerprint "),
        ("answers.parquet", "answers.parquet: saved outputs of 1 sample, 1 repetition"),
        ("run.json", "run.json: report of run 20250615T150640Z-"),
    ],
)
def test_validate_reports_kind_of_file(folder, file, start):
    more = {
        "answers.jsonl": '{"id": "a", "output": "x"}\n',
        "golden.jsonl": '{"id": "a", "input": {}, "expected_output": "x"}\n',
        "golden.ndjson": '{"id": "a", "input": {}, "expected_output": "x"}\n',
        "golden.csv": "id,input.q,expected_output\na,b,c\n",
        "answers.csv": "id,output\na,b\n",
        "golden.parquet": _parquet({"id": ["a"], "input.q": ["b"], "expected_output": ["c"]}),
        "answers.parquet": _parquet({"id": ["a"], "output": ["b"]}),
    }
    written(folder, {**FILES, **more})
    called("run", "suite.yml", "--to", "run.json")
    result = called("check", file)
    assert (result.exit_code, result.stderr) == (0, "")
    assert result.stdout.startswith(start)


def test_validate_checks_everything_a_suite_names(folder):
    written(folder, {**FILES, "suite.yml": SUITE.replace("[exact-match]", "[exact-match, rogue-l]")})
    result = called("check", "suite.yml")
    assert (result.exit_code, result.stdout) == (2, "")
    assert result.stderr == "error: suite.yml:4: No metric is called `rogue-l`. Did you mean `rouge-l`?\n"


@pytest.mark.parametrize("gate", ["metrics: { exact: { min_mean: 1 } }", "cohorts: { polcy: { min_pass_rate: 1 } }"])
def test_validate_finds_unknown_names_in_gate(folder, gate):
    written(folder, {**FILES, "suite.yml": f"{SUITE}gate: {{ {gate} }}\n"})
    result = called("check", "suite.yml")
    assert (result.exit_code, result.stdout) == (2, "")
    assert "suite.yml:5: The gate names the " in result.stderr


def test_suite_says_whether_its_gate_can_be_decided(world):
    world(suite_yml=f"{SUITE}gate: {{ min_pass_rate: 0.9 }}\n")
    assert "1 gate rule, which these samples can decide" in called("check", "suite.yml").stdout
    world(suite_yml=f"{SUITE}gate: {{ min_pass_rate: 0.9, on: lower }}\n")
    result = called("check", "suite.yml")
    assert "can decide" not in result.stdout
    assert "The gate can never pass: `min_pass_rate` holds the lower end" in result.stderr


def test_several_files_are_checked_in_the_given_order(world):
    world()
    assert checked("suite.yml", "answers.yml", "golden.yml") == (0, ["suite.yml", "answers.yml", "golden.yml"])


def test_issues_of_one_file_do_not_hide_another(world):
    world(golden_yml=GOLDEN.replace("id: fee", "idd: fee"), other_yml="outputs: [\n")
    done = called("check", "golden.yml", "answers.yml", "other.yml")
    assert done.exit_code == 2
    assert done.stdout.startswith("answers.yml: saved outputs of 2 samples")
    assert "golden.yml:7" in done.stderr
    assert "other.yml:2" in done.stderr
    assert done.stderr.endswith("3 files checked, 2 with issues\n")


def test_one_file_has_no_summary(world):
    world()
    assert called("check", "suite.yml").stderr == ""


def test_without_file_this_directory_is_searched(world):
    world()
    assert called("check").stderr == called("check", ".").stderr
    assert "suite.yml: suite `" in called("check").stdout


def test_directory_is_searched_for_suites_and_for_files_that_name_a_schema(world):
    folder = world()
    named = {
        "a/golden.yml": SCHEMA + GOLDEN,
        "a/b/outputs.jsonl": '{"schema_version": "deemster.outputs.v1"}\n{"id": "window", "output": "x"}\n',
        "a/broken.json": '{"schema_version": "deemster.votes.v1", ',
        "old.yaml": "schema_version: eval-harness.dataset.v1\n" + GOLDEN,
    }
    foreign = {
        "compose.yml": "services: {web: {image: x}}\n",
        "cloud.yaml": "Value: !Ref Bucket\n",
        "table.csv": "id,input,expected_output\n1,2,3\n",
        "rows.jsonl": '{"metrics": 1}\n',
        "action.yml": "outputs: {a: {value: 1}}\n",
        "other.json": '{"schema_version": "someone.dataset.v1"}',
        "answers.yml": "outputs: {window: 30 days, fee: none}\n",
        "golden.yml": GOLDEN,
    }
    skipped = {
        ".github/workflows/x.yml": SCHEMA,
        "node_modules/x.yml": SCHEMA,
        "env/pyvenv.cfg": "",
        "env/x.yml": SCHEMA,
        "notes.md": SCHEMA,
    }
    written(folder, {**named, **foreign, **skipped})
    done = called("check", ".")
    assert done.exit_code == 2
    assert [line.partition(": ")[0] for line in done.stdout.splitlines()] == [
        "old.yaml",
        "suite.yml",
        "a/golden.yml",
        "a/b/outputs.jsonl",
    ]
    assert "a/broken.json:1" in done.stderr
    assert done.stderr.endswith("5 files checked, 1 with issues, 8 files of other kinds passed over\n")


def test_file_that_is_named_twice_is_checked_once(world):
    world()
    assert checked(".", "suite.yml", "golden.yml") == (0, ["suite.yml", "golden.yml"])


def test_directory_without_files_to_check_is_bad_input(world):
    folder = world()
    (folder / "empty").mkdir()
    done = called("check", "suite.yml", "empty")
    assert done.exit_code == 2
    assert "empty: No file in this directory says that it is" in done.stderr


def test_with_kind_every_file_of_a_directory_is_checked_as_it(world):
    folder = world()
    written(folder, {"data/a.csv": "id,input.q,expected_output\n1,2,3\n", "data/b.yml": GOLDEN})
    assert checked("data", "--as", "dataset") == (0, ["data/a.csv", "data/b.yml"])


def test_suites_of_one_directory_import_their_own_modules(folder):
    for template in TEMPLATES:
        called("init", template, "--template", template)
    code, valid = checked(".")
    assert code == 0
    assert {f"{template}/suite.yml" for template in TEMPLATES} <= set(valid)


@pytest.mark.parametrize(
    ("suite", "said"),
    [
        ("metrics: [contains, rouge-l]\n", "suite `watch`, 2 metrics, no dataset"),
        ("metrics: [contains]\ntarget: {python: 'app:answer'}\n", "`dataset` is missing."),
        ("metrics: [contains]\ngate: {min_macro_f1: 1}\n", "`dataset` is missing."),
        ("metrics: [contain]\n", "Did you mean `contains`?"),
        ("metrics: [llm-as-judge]\n", "`judge`, which is not there"),
        ("name: x\nschema_version: deemster.suite.v1\n", "`metrics` is a list of at least one metric."),
    ],
)
def test_suite_without_dataset_is_one_for_rescore(world, suite, said):
    world(watch_yml=suite)
    done = called("check", "watch.yml")
    assert said in done.output
    assert done.exit_code == (0 if "no dataset" in said else 2)


def test_suite_in_a_directory_is_checked_with_what_it_names(world):
    folder = world()
    written(folder, {"evals/suite.yml": SUITE})
    done = called("check", "evals")
    assert done.exit_code == 2
    assert "evals/suite.yml:2: There is no file `golden.yml`." in done.stderr
