"""The other commands: metrics, report, completion, help."""

from __future__ import annotations

import json
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from deemster.cli import _retired
from deemster.cli.main import COMMANDS, GROUPS
from deemster.errors import ConfigurationError, MissingExtraError
from deemster.judges._metric_table import PLACES, PRESETS
from deemster.judges.metric_catalog import parse_metric
from tests.cli.workspace import FILES, called, read_line, written

# What stands in the table of what is gone without a new name.
EARLIER = ("certify", "verify")
EARLIER_FLAGS = {
    *("--cascade", "--cost", "--csv-raw", "--fresh-items", "--strong", "--tolerance", "--until-decided"),
}
# What stands in a sentence after the table.
SUITE_KEYS = {
    "--canary",
    "--delta",
    "--forbidden-tool",
    "--input-key",
    "--junit-samples",
    "--keep-prompts",
    "--max-unscored",
    "--mutator",
    "--on",
    "--private-pattern",
    "--strict",
}


@pytest.mark.parametrize("command", ["", *COMMANDS])
def test_help_matches_golden_file(command, golden):
    result = called(*command.split(), "--help", COLUMNS="100", TERMINAL_WIDTH="100")
    assert result.exit_code == 0
    golden(f"cli/{command or 'deemster'}.txt", result.stdout)


@pytest.mark.parametrize("command", ["", "run", "check", "show", "baseline", "compare", "demo", "init"])
def test_help_of_the_first_day_fits_one_screen(command):
    lines = called(*command.split(), "--help", TERMINAL_WIDTH="78").stdout.splitlines()
    assert len(lines) <= 40
    assert max(map(len, lines)) <= 80


def test_help_begins_with_what_one_types_on_the_first_day():
    _, *lines = called("--help").stdout.partition("The first day:\n")[2].splitlines()
    assert [line.split()[0] for line in lines[:6]] == ["init", "check", "run", "show", "baseline", "compare"]


def test_help_lists_the_commands_in_groups_with_the_line_of_each():
    listed = " ".join(called("--help", COLUMNS="200").stdout.split())
    for heading, commands in GROUPS.items():
        assert heading in listed
        for command, line in commands.items():
            assert f"{command} {line}" in listed
            assert line in " ".join(called(command, "--help").stdout.split())


@pytest.mark.parametrize("named", _retired.GONE_FLAGS)
def test_retired_flag_says_what_to_do_instead(named):
    *command, flag = named.split()
    result = called(*(command or ["show"]), "file", flag, "value")
    assert result.exit_code == 2
    assert f"`{flag}` is gone. {_retired.GONE_FLAGS[named]}" in result.stderr


@pytest.mark.parametrize("command", _retired.GONE_COMMANDS)
def test_retired_command_says_what_to_do_instead(command):
    result = called(command, "latest")
    assert result.exit_code == 2
    assert f"`{command}` is gone. {_retired.GONE_COMMANDS[command]}" in result.stderr


@pytest.mark.parametrize("verb", _retired.GONE_VERBS)
def test_retired_verb_says_what_to_do_instead(verb):
    result = called(*verb.split())
    assert result.exit_code == 2
    assert f"`{verb}` is gone. {_retired.GONE_VERBS[verb]}" in result.stderr


def renamed():
    """The rows of the changelog's tables of the command line: what was typed before, and what is typed now."""
    text = (Path(__file__).parents[2] / "CHANGELOG.md").read_text(encoding="utf-8")
    sections = text.split("\n### The command line\n")[1:]
    tables = "\n".join(section.partition("\n### ")[0] for section in sections)
    return re.findall(r"^\| `(deemster .*?)` \| `(deemster .*?)` \|$", tables, re.MULTILINE)


@pytest.mark.parametrize(("before", "now"), renamed())
def test_old_line_of_the_changelog_is_answered_and_the_new_one_can_be_read(before, now):
    _, *old = shlex.split(before)
    result = called(*old)
    assert (result.exit_code, " is gone. " in result.stderr) == (2, True)
    assert read_line(now) is not None


def test_changelog_has_the_lines_of_every_command_that_is_gone():
    old = " ".join(before for before, _ in renamed())
    assert all(
        f"deemster {words}" in old for words in (*_retired.GONE_COMMANDS, *_retired.GONE_VERBS) if words not in EARLIER
    )


def test_changelog_has_a_line_of_every_flag_that_is_gone():
    old = [shlex.split(before) for before, _ in renamed()]
    flags = {word.partition("=")[0] for words in old for word in words if word.startswith("--")}
    gone = {name.split()[-1] for name in _retired.GONE_FLAGS} - EARLIER_FLAGS - SUITE_KEYS
    assert gone <= flags


@pytest.mark.parametrize(("word", "meant"), _retired.OTHER_TOOLS.items())
def test_word_of_another_tool_is_answered_with_the_command_that_is_meant(word, meant):
    result = called(word, "suite.yml")
    assert result.exit_code == 2
    assert f"Did you mean `{meant}`?" in result.stderr
    assert meant in COMMANDS


def test_version_is_that_of_the_package():
    import deemster

    assert called("--version").stdout == f"deemster {deemster.__version__}\n"


def test_metrics_command_lists_every_metric():
    listed = json.loads(called("metrics", "--to", "-").stdout)
    assert sum(entry["core"] for entry in listed) <= 15
    shown = called("metrics").stdout
    assert all(f" {entry['name']} " in shown for entry in listed)


# What the extras of `pyproject.toml` bring.
EXTRAS = frozenset(
    {"hypothesis", "matplotlib", "mlflow", "openpyxl", "opentelemetry", "pandas", "psycopg", "pyarrow", "ray"}
    | {"sacrebleu", "starlette", "uvicorn", "xllamacpp", "zstandard"}
)


def test_catalog_is_the_same_without_any_extra_and_names_those_that_metrics_need(monkeypatch):
    asked = [("metrics",), ("metrics", "--to", "-"), *(("metrics", name) for name in (*PLACES, *PRESETS))]
    whole = [called(*argv).stdout for argv in asked]
    for module in EXTRAS:
        monkeypatch.setitem(sys.modules, module, None)
    results = [called(*argv) for argv in asked]
    assert {(result.exit_code, result.stderr) for result in results} == {(0, "")}
    assert [result.stdout for result in results] == whole
    assert re.search(r"^ +bleu .* \(needs deemster\[bleu\]\)$", whole[0], re.MULTILINE)
    extras = {entry["name"]: entry["extra"] for entry in json.loads(whole[1])}
    assert {name for name, extra in extras.items() if extra} == {name for name in extras if lacks_extra(name)}


def lacks_extra(name):
    try:
        parse_metric(name)
    except MissingExtraError:
        return True
    except ConfigurationError:
        # It has an option that must be given.
        return False
    return False


def test_preset_is_described_with_its_threshold_fields_and_prompt():
    shown = called("metrics", "redundancy").stdout
    assert "default 0.5" in shown
    assert re.search(r"higher_is_better +true or false, default false", shown)
    assert re.search(r'fields +list of texts, default \["input", "actual_output"\]', shown)
    assert "Reads: no expected output and no metadata." in shown
    assert "Steps:" in shown
    shown = called("metrics", "groundedness").stdout
    assert re.search(r"`threshold` \(default 1.0\)", shown)
    assert "Reads: `metadata.context`." in shown
    assert "Reads: `expected_output`." in called("metrics", "completeness").stdout
    (entry,) = json.loads(called("metrics", "groundedness", "--to", "-").stdout)
    defaults = {option["name"]: option["default"] for option in entry["options"]}
    assert [band["range"] for band in defaults["rubric"]] == [[1, 1], [2, 2], [3, 3]]


def test_group_is_described_by_its_metrics_and_its_aggregator():
    shown = called("metrics", "query-transformation").stdout
    assert '- {"query-groundedness": {"name": "groundedness"}}' in shown
    assert 'Aggregator: {"kind": "weighted", "weights": {"completeness": 0.4' in shown
    assert json.loads(called("metrics", "generation", "--to", "-").stdout)["metrics"][:2] == [
        "completeness",
        "redundancy",
    ]
    assert " generation " in called("metrics").stdout


@pytest.mark.parametrize("name", ["rouge-l", "ndcg", "retrieval-ndcg-at-k", "ndcg@10"])
def test_metric_is_described_by_alias_short_name_or_spec(name):
    shown = called("metrics", name)
    assert shown.exit_code == 0
    assert "Options:" in shown.stdout
    assert "Reads: " in shown.stdout


def test_report_shows_a_file_on_the_terminal(folder):
    written(folder, FILES)
    shown = called("run", "suite.yml", "--to", "run.json").stdout
    assert shown.partition("\nNext:")[0] == called("show", "run.json").stdout.partition("\nNext:")[0]
    assert called("show", "run.json").stdout.endswith("\nNext: deemster show run.json fee\n")
    assert shown.startswith("No gate. 1 of 2 samples did not pass.\n")


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_completion_script_is_printed(shell):
    result = called("completion", shell)
    assert result.exit_code == 0
    assert "_DEEMSTER_COMPLETE" in result.stdout


LOADED = """
import sys
from deemster.cli import app
try:
    app(["run", "suite.yml", "--quiet", "--store", "runs.db"])
finally:
    print(*sorted({name.split(".")[1] for name in sys.modules if name.startswith("deemster.")}))
"""


def test_plain_run_loads_no_room_that_its_suite_does_not_need(tmp_path):
    (tmp_path / "golden.jsonl").write_text('{"id": "a", "input": {}, "expected_output": "yes"}\n')
    (tmp_path / "outputs.jsonl").write_text('{"id": "a", "output": "yes"}\n')
    (tmp_path / "suite.yml").write_text(
        "dataset: golden.jsonl\ntarget: {outputs: outputs.jsonl}\nmetrics: [exact-match, rouge-l]\n"
    )
    done = subprocess.run([sys.executable, "-c", LOADED], cwd=tmp_path, capture_output=True, check=False, text=True)
    assert done.returncode == 0, done.stderr
    rooms = set(done.stdout.split())
    assert {"evaluation", "store"} < rooms
    assert not rooms & {"agreement", "attack", "audit", "calibration", "comparison", "grading", "monitoring", "remote"}
