"""What `deemster run` writes to standard output, to standard error and into files."""

from __future__ import annotations

import csv
import io
import json
import re
import xml.etree.ElementTree as ET

import pytest

from tests.cli.workspace import GOLDEN, SUITE, called, started, written

NASTY = SUITE.replace("[exact-match]", '[{exact-match: {name: "::error::\\e[31m"}}]')


@pytest.mark.parametrize(
    ("form", "reads"),
    [
        ("json", json.loads),
        ("csv", lambda text: list(csv.reader(io.StringIO(text), strict=True))[1]),
        ("junit", lambda text: ET.fromstring(text).find("testsuite")),
        ("html", lambda text: re.fullmatch(r"<!doctype html>.*</html>\n", text, re.DOTALL)),
        ("md", lambda text: text.startswith("# deemster report")),
        ("github", lambda text: text.startswith("## deemster report")),
    ],
)
def test_report_on_stdout_is_the_only_output_there(world, form, reads):
    world()
    result = called("run", "suite.yml", "--to", f"{form}:-")
    assert result.exit_code == 0
    assert reads(result.stdout) not in (None, False)


def test_every_format_can_be_written_in_one_run(world):
    folder = world()
    names = ("r.json", "r.md", "r.csv", "r.html", "r.xml", "pr-comment.md", "github:r.summary")
    flags = [word for name in names for word in ("--to", name)]
    assert called("run", "suite.yml", *flags).exit_code == 0
    assert all((folder / name.removeprefix("github:")).stat().st_size for name in names)


def test_report_is_the_same_bytes_on_stdout_in_a_file_and_rendered_again(world):
    folder = world()
    shown = called("run", "suite.yml", "--to", "-", "--store", "none").stdout
    assert called("run", "suite.yml", "--to", "run.json").exit_code == 0
    assert (folder / "run.json").read_text() == shown
    assert called("show", "run.json", "--to", "-").stdout == shown


@pytest.mark.parametrize("form", ["md", "csv", "html", "junit", "github"])
def test_rendered_report_equals_report_of_run(world, form):
    world()
    once = called("run", "suite.yml", "--to", "run.json", "--to", f"{form}:once").exit_code
    again = called("show", "run.json", "--to", f"{form}:again").exit_code
    assert (once, again) == (0, 0)
    assert (world() / "once").read_bytes() == (world() / "again").read_bytes()


@pytest.mark.parametrize("flags", [(), ("--without-text",)])
def test_report_file_shows_what_the_run_shows(world, flags):
    world(suite_yml=SUITE.replace("[exact-match]", "[contains-all, json-match, retrieval-recall-at-k@3]"))
    called("run", "suite.yml", "--to", "run.json")
    direct = called("run", "suite.yml", "--to", "-", "--store", "none", *flags).stdout
    assert called("show", "run.json", "--to", "-", *flags).stdout == direct
    assert called("show", "latest", "--to", "-", *flags).stdout == direct


def test_input_is_in_the_file_unless_texts_are_left_out(world):
    world()
    assert "How long?" in called("run", "suite.yml", "--to", "-").stdout
    assert "How long?" not in called("run", "suite.yml", "--to", "-", "--without-text").stdout


def junit_failures(*argv):
    """How many marks a JUnit report counts as failures; None where it counts none as such."""
    return ET.fromstring(called(*argv, "--to", "junit:-").stdout)[1].get("failures")


@pytest.mark.parametrize(("kind", "failures"), [("gate", None), ("samples", "1")])
def test_suite_says_whether_samples_fail_in_junit(world, kind, failures):
    world(suite_yml=f"{SUITE}junit: {kind}\n")
    assert junit_failures("run", "suite.yml") == failures
    assert junit_failures("show", "latest") == failures
    assert junit_failures("run", "--outputs", "latest", "--metric", "exact-match") == failures


def test_suite_that_rescores_says_what_fails_in_junit(world):
    folder = world(suite_yml=f"{SUITE}junit: samples\n")
    assert junit_failures("run", "suite.yml") == "1"
    written(folder, {"other.yml": SUITE})
    assert junit_failures("run", "other.yml", "--outputs", "latest") is None


def test_csv_guards_formulas(world):
    world(golden_yml=GOLDEN.replace("id: fee", "id: '=fee'"), answers_yml="outputs: {window: a, '=fee': b}\n")
    assert "\n'=fee," in called("run", "suite.yml", "--to", "csv:-").stdout


def test_report_to_pipe_has_no_colour(world):
    world(suite_yml=SUITE + "gate: { min_macro_f1: 0.9 }\n")
    assert "\x1b" not in called("run", "suite.yml").stdout


def test_colour_is_only_for_terminals_without_no_color(world):
    from rich.console import Console

    from deemster.report.report_sections import report_sections
    from deemster.text.terminal_layout import print_sections
    from tests.report.runs import full_report

    def text(**options):
        file = io.StringIO()
        print_sections(report_sections(full_report()), Console(file=file, force_terminal=True, width=120, **options))
        return file.getvalue()

    assert "\x1b[" in text(_environ={"TERM": "xterm"})
    assert not re.search(r"\x1b\[[0-9;]*3[0-9]m", text(_environ={"TERM": "xterm", "NO_COLOR": "1"}))


def test_hostile_names_are_escaped_on_both_streams(world):
    world(
        suite_yml=NASTY.replace("\\e", "\x1b") if False else NASTY.replace("'::error::\\e[31m'", '"::error::\\e[31m"')
    )
    result = called("run", "suite.yml")
    assert result.exit_code == 0
    assert "\x1b" not in result.stdout + result.stderr
    assert not [line for line in (result.stdout + result.stderr).splitlines() if line.lstrip().startswith("::")]


def test_quiet_prints_only_gate_decision(world):
    world(suite_yml=SUITE + "gate: { min_macro_f1: 0.1 }\n")
    result = called("run", "suite.yml", "--quiet")
    assert (result.exit_code, result.stdout) == (0, "")
    assert result.stderr == "Gate: pass (1 passed).\n"


def test_subprocess_keeps_stdout_and_stderr_separate(world):
    process = started(world(), "run", "suite.yml", "--to", "-", "--metric", "exact-match", "--metric", "regex")
    out, err = process.communicate(timeout=180)
    assert process.returncode == 0
    assert json.loads(out)["metric_order"] == ["exact-match", "regex"]
    assert "Traceback" not in err


def test_absent_values_are_one_warning_per_metric_on_stderr(world):
    world(golden_yml=GOLDEN.replace("30 days", "null"))
    result = called("run", "suite.yml", "--to", "-")
    assert result.exit_code == 3
    assert result.stderr.splitlines()[0] == (
        "warning: exact-match: 1 of 2 samples will be unscored, first `window`: "
        "The sample has no `expected_output`, which this metric reads."
    )


def test_two_runs_at_same_time_give_same_bytes(world):
    world()
    places = (
        (
            "--store",
            "none",
        ),
        ("--store", "a.db"),
        ("--store", "b.db"),
    )
    assert len({called("run", "suite.yml", "--to", "-", *place).stdout for place in places}) == 1


def test_two_runs_at_same_time_in_one_store_get_different_ids(world):
    world()
    first, second = (json.loads(called("run", "suite.yml", "--to", "-").stdout) for _ in range(2))
    assert second["run"].pop("id") == first["run"].pop("id") + "-2"
    assert first == second


def test_bad_source_date_epoch_is_bad_input(world):
    world()
    result = called("run", "suite.yml", SOURCE_DATE_EPOCH="yesterday")
    assert (result.exit_code, result.stdout) == (2, "")
    assert result.stderr == "error: SOURCE_DATE_EPOCH is a number of seconds since 1970, not 'yesterday'.\n"


def test_metric_and_threshold_flags_override_suite(world):
    world()
    flags = ("--metric", "rouge-l", "--threshold", "rouge-l=0.9", "--repetitions", "3")
    report = json.loads(called("run", "suite.yml", "--to", "-", *flags).stdout)
    assert report["metric_order"] == ["rouge-l"]
    assert report["metrics"]["rouge-l"]["threshold"] == 0.9
    assert (report["totals"]["repetitions"], report["run"]["varied"]) == (3, "scoring")
    assert report["precision"]["target_delta"] == 0.05


def test_suite_says_which_difference_repetitions_should_show(world):
    world(suite_yml=SUITE + "repetitions: 3\ndelta: 0.2\n")
    assert json.loads(called("run", "suite.yml", "--to", "-").stdout)["precision"]["target_delta"] == 0.2


def test_absent_reference_is_error_of_run_and_validate_where_suite_is_strict(world):
    world(golden_yml=GOLDEN.replace("none", "null"), suite_yml=SUITE + "strict: true\n")
    for command in ("run", "check"):
        result = called(command, "suite.yml")
        assert (result.exit_code, result.stdout) == (2, "")
        assert "exact-match" in result.stderr
    world(golden_yml=GOLDEN.replace("none", "null"), suite_yml=SUITE)
    assert called("check", "suite.yml").exit_code == 0


@pytest.mark.parametrize(
    ("flag", "suite", "dataset", "found"), [(None, None, None, 1), (None, None, 2, 2), (None, 3, 2, 3), (4, 3, 2, 4)]
)
def test_repetitions_come_from_the_flag_then_the_suite_then_the_dataset(world, flag, suite, dataset, found):
    world(
        suite_yml=SUITE + (f"repetitions: {suite}\n" if suite else ""),
        golden_yml=(f"repetitions: {dataset}\n" if dataset else "") + GOLDEN,
    )
    flags = ("--repetitions", str(flag)) if flag else ()
    assert json.loads(called("run", "suite.yml", "--to", "-", *flags).stdout)["totals"]["repetitions"] == found


def test_paths_in_a_suite_are_relative_to_the_suite(world, monkeypatch):
    folder = world()
    (folder / "elsewhere").mkdir()
    monkeypatch.chdir(folder / "elsewhere")
    assert called("run", "../suite.yml").exit_code == 0


def test_target_in_the_suites_folder_is_found_from_elsewhere(world, monkeypatch):
    folder = world(suite_yml=SUITE.replace("outputs: answers.yml", "python: 'output_app:answer'"))
    written(folder, {"output_app.py": "def answer(input):\n    return '30 days'\n", "elsewhere/keep": ""})
    monkeypatch.chdir(folder / "elsewhere")
    result = called("run", "../suite.yml", "--to", "-")
    assert json.loads(result.stdout)["executions"][0]["output"] == "30 days"


def test_warnings_are_redacted_like_reports(world):
    world(
        golden_yml="name: g\nsamples:\n  - {id: window, input: {}, expected_output: true}\n"
        "  - {id: fee, input: {}, expected_output: none}\n",
        answers_yml="outputs: {window: x, fee: none}\n",
    )
    assert 'Quote it: "true"' in called("run", "suite.yml").stderr
    told = called("run", "suite.yml", "--without-text").stderr
    assert "1 of 2 samples will be unscored, first `window`" in told
    assert "true" not in told


def test_metric_flag_skips_gate_rules_of_other_metrics(world):
    world(suite_yml=SUITE + "gate: { metrics: { exact-match: { min_mean: 0.9 } } }\n")
    result = called("run", "suite.yml", "--metric", "rouge-l", "--quiet")
    assert result.exit_code == 0
    assert "Gate not decided (1 skipped)." in result.stderr


def test_unset_variable_of_unused_target_is_allowed(world):
    world(suite_yml=SUITE.replace("answers.yml", '"${NOBODY_SET_THIS}/answers.yml"'))
    assert "NOBODY_SET_THIS" in called("run", "suite.yml").stderr
    assert called("run", "suite.yml", "--outputs", "answers.yml", "--quiet").exit_code == 0


def test_quiet_tells_the_most_frequent_failure_with_its_number_and_line(world):
    folder = world(
        suite_yml="name: s\ndataset: golden.yml\ntarget: {python: 'quiet_app:answer'}\nmetrics: [contains]\n"
    )
    (folder / "quiet_app.py").write_text("def answer(input):\n    raise ConnectionError('connection refused')\n")
    result = called("run", "suite.yml", "--quiet")
    assert result.exit_code == 3
    said = "2 of 2 samples crashed: ConnectionError: connection refused (quiet_app.py:2)."
    assert f"incomplete: {said}" in result.stderr


@pytest.mark.parametrize("flag", ["json:golden.yml", "md:./suite.yml", "csv:answers.yml"])
def test_report_never_takes_the_place_of_what_the_run_reads(world, flag):
    folder = world()
    before = {path.name: path.read_bytes() for path in folder.glob("*.yml")}
    result = called("run", "suite.yml", "--outputs", "answers.yml", "--to", flag)
    assert (result.exit_code, "a report would take its place" in result.stderr) == (2, True)
    assert {path.name: path.read_bytes() for path in folder.glob("*.yml")} == before
