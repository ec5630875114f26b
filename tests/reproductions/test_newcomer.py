"""What the newcomer of November 2026 stumbled over on the first day, with the bot and the spreadsheet they brought."""

from __future__ import annotations

import csv
import shutil
from pathlib import Path

import pytest

from deemster.datasets import Dataset
from tests.cli.workspace import called, started, written

BROUGHT = Path(__file__).parent / "newcomer"
GOLDEN = """\
id;input.question;expected_output;tags
1;How does a return work?;You can return shoes within 30 days. They must be unworn.;policy
2;When do I get my refund?;We refund you within 5 working days.;policy
7;Do you sell tents?;No, we sell shoes.;range
8;Do you sell tents?;No, we only sell shoes.;range
"""
SUITE = """\
dataset: golden.csv
target: {{ python: "help_desk:answer" }}
metrics: [exact-match, token-f1, rouge-l]
gate: {{ max_unscored: {allowed} }}
"""
CRASH = "KeyError: 'tents' (help_desk.py:27)"


@pytest.fixture
def bot(tmp_path, monkeypatch):
    """A folder with the bot, its questions and a suite that allows so much to be unscored; the bot can be mended."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path))
    shutil.copy(BROUGHT / "help_desk.py", tmp_path)

    def suite(allowed="0"):
        written(tmp_path, {"golden.csv": GOLDEN, "suite.yml": SUITE.format(allowed=allowed)})
        return tmp_path

    return suite


def test_crashes_are_counted_in_samples_with_what_was_raised_and_what_to_type(bot):
    bot()
    result = called("run", "suite.yml", "--quiet")
    assert result.exit_code == 3
    assert result.stderr.splitlines()[-3:] == [
        f"incomplete: 2 of 4 samples crashed: {CRASH}.",
        "What crashed, and where: deemster show latest 7",
        "After a fix: deemster run suite.yml --only failed",
    ]
    assert "--resume" not in result.stderr + called("show", "latest").stderr


def test_commands_that_a_crash_names_show_it_and_run_it_again(bot):
    folder = bot()
    called("run", "suite.yml", "--quiet")
    shown = called("show", "latest", "7").stdout
    assert CRASH in shown
    assert "Traceback" in shown
    brief = called("show", "latest", "--failed").stdout
    assert f"no score, `target_failed: {CRASH.replace('`', chr(39))}`" in brief
    assert "`7`, `8`" in brief

    again = called("run", "suite.yml", "--only", "failed", "--to", "again.csv", "--quiet")
    assert again.exit_code == 3
    assert {line.partition(",")[0] for line in (folder / "again.csv").read_text().splitlines()[1:]} == {"1", "7", "8"}


@pytest.mark.parametrize(
    ("allowed", "code", "says"),
    [
        ("2 samples", 0, f"6 of 12 scores are missing, which is allowed: {CRASH}."),
        ("1 sample", 3, f"incomplete: 2 of 4 samples crashed, above the 1 sample allowed: {CRASH}."),
        ("6", 0, f"6 of 12 scores are missing, which is allowed: {CRASH}."),
        (
            "2",
            3,
            f"incomplete: 2 of 4 samples crashed, which leaves 6 of 12 scores missing, above the 2 allowed: {CRASH}.",
        ),
    ],
)
def test_crashes_may_be_allowed_in_samples_whatever_the_number_of_metrics(bot, allowed, code, says):
    bot(allowed)
    result = called("run", "suite.yml", "--quiet")
    assert result.exit_code == code
    assert says in result.stderr.splitlines()


def test_interrupted_run_is_told_to_resume(bot):
    process = started(bot(), "run", "suite.yml", "--quiet", "--timeout", "0.000001")
    _, err = process.communicate(timeout=180)
    assert process.returncode == 3
    assert "To continue: deemster run suite.yml --resume" in err.splitlines()


COLUMNS = 'id: Nr, input.question: Frage, expected_output: "Erwartete Antwort"'
OWN_SHEET = """\
dataset: {{ file: {file}, columns: {{ {columns} }} }}
target: {{ python: "help_desk:answer" }}
metrics: [exact-match, retrieval-hit-at-k: {{ where: {{ has: relevant }} }}]
gate: {{ max_unscored: 2 samples }}
"""


@pytest.fixture
def sheet(tmp_path, monkeypatch):
    """A folder with the bot, and a suite whose dataset is the spreadsheet, written as a German Excel writes it."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path))
    shutil.copy(BROUGHT / "help_desk.py", tmp_path)
    text = (BROUGHT / "fragen.csv").read_text(encoding="utf-8")

    def suite(columns=f"{COLUMNS}, metadata.tags: Kategorie, metadata.relevant: Quelle", *, edit=lambda text: text):
        windows = edit(text).replace("\n", "\r\n")
        written(
            tmp_path,
            {
                "fragen.csv": b"\xef\xbb\xbf" + windows.encode(),
                "suite.yml": OWN_SHEET.format(file="fragen.csv", columns=columns),
                "plain.yml": f"dataset: fragen.csv\n{OWN_SHEET.partition(chr(10))[2]}".replace("{{", "{").replace(
                    "}}", "}"
                ),
            },
        )
        return tmp_path

    return suite


def test_spreadsheet_with_columns_of_its_own_is_a_dataset(sheet):
    sheet()
    assert called("run", "suite.yml", "--quiet").exit_code == 0
    data = Dataset.load(
        "fragen.csv", columns={"id": "Nr", "input.question": "frage", "expected_output": "Erwartete Antwort"}
    )
    assert data[2].input == {"question": "What is the price of shipping?"}
    assert data[2].metadata == {"kategorie": "Versand", "quelle": "ship-1|ship-2"}


def test_bugs_of_the_bot_are_in_the_report(sheet):
    folder = sheet()
    called("run", "suite.yml", "--quiet", "--to", "run.csv")
    rows = list(csv.DictReader((folder / "run.csv").read_text(encoding="utf-8").splitlines()))
    failed = {row["sample_id"] for row in rows if row["metric"] == "exact-match" and row["success"] != "true"}
    assert failed == {"1", "3", "6", "7", "8"}
    missed = {row["sample_id"] for row in rows if row["metric"] == "retrieval-hit-at-k" and row["success"] == "false"}
    assert missed == {"6"}
    shown = called("show", "latest", "--failed").stdout
    for sentence in (CRASH, "within 14 days", "5 dollars", "Size 44 is 28 cm long."):
        assert sentence in shown


def test_unknown_columns_are_one_message_with_the_line_to_write(sheet):
    sheet()
    refused = called("check", "plain.yml")
    assert refused.exit_code == 2
    (line,) = refused.stderr.splitlines()
    mapping = f"{COLUMNS}, metadata.tags: Kategorie, metadata.quelle: Quelle"
    assert line.endswith(f"`dataset: {{ file: fragen.csv, columns: {{ {mapping} }} }}`")
    sheet(mapping.replace("quelle", "relevant"))
    assert called("check", "suite.yml").exit_code == 0


def test_samples_without_ids_are_called_by_their_line(sheet):
    sheet('input.question: Frage, expected_output: "Erwartete Antwort", metadata.relevant: Quelle')
    checked = called("check", "suite.yml")
    assert checked.exit_code == 0
    assert "each sample is called by its line, such as `line-2`" in checked.stderr
    called("run", "suite.yml", "--quiet")
    assert "sells" not in called("show", "latest", "line-8").stdout
    assert "tents" in called("show", "latest", "line-8").stdout


def test_mistake_in_many_rows_is_one_line(sheet):
    sheet(edit=lambda text: text.replace("Sortiment;", "Sortiment").replace(".;Versand", ".Versand"))
    refused = called("check", "suite.yml")
    assert refused.exit_code == 2
    assert refused.stderr == "error: fragen.csv: 4 lines (4, 5, 8, 9): The line has 4 cells; the header has 5.\n"


@pytest.mark.parametrize(
    ("columns", "says"),
    [
        ("id: Nummer", "There is no column `Nummer`."),
        ("id: Nr, inpt.question: Frage", "Did you mean `input.question`?"),
        ("id: Nr, expected_output: Frage", "The input is missing"),
        (f"{COLUMNS}, metadata.tags: Frage", "input"),
    ],
)
def test_mapping_that_fits_no_column_is_an_error_with_the_nearest_one(sheet, columns, says):
    sheet(columns)
    refused = called("check", "suite.yml")
    assert refused.exit_code == 2
    assert says in refused.stderr


def test_workbook_is_read_like_the_spreadsheet(sheet):
    openpyxl = pytest.importorskip("openpyxl")
    folder = sheet()
    book = openpyxl.Workbook()
    for row in csv.reader((BROUGHT / "fragen.csv").read_text(encoding="utf-8").splitlines(), delimiter=";"):
        book.active.append(row)
    book.save(folder / "fragen.xlsx")
    columns = {
        "id": "Nr",
        "input.question": "Frage",
        "expected_output": "Erwartete Antwort",
        "metadata.tags": "Kategorie",
    }
    sheets = [Dataset.load(f"fragen.{kind}", columns=columns) for kind in ("csv", "xlsx")]
    assert sheets[0].fingerprint == sheets[1].fingerprint


def test_rubric_improve_takes_columns_and_guesses_one_that_can_be_the_id(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    rubric = "criteria: [{ name: clear, requirement: The essay is clear. , weight: 1 }]\n"
    essays = "Nr;Klasse;Text;clear\n1;8a;One.;ja\n2;8a;Two.;nein\n3;8b;Three.;ja\n"
    models = "models: { judge: { fake: yes } }\n"
    written(tmp_path, {"rubric.yml": rubric, "essays.csv": essays, "models.yml": models})
    line = (
        "rubric",
        "improve",
        "rubric.yml",
        "essays.csv",
        "--judge",
        "judge",
        "--to",
        "new.yaml",
        "--models",
        "models.yml",
    )
    refused = called(*line)
    assert "`--columns id=NAME`. Is it `Nr`?" in refused.stderr
    assert "id" not in called(*line, "--columns", "id=Nr,submission=Text", "--dry-run").stderr.partition("column")[2]


def test_file_in_place_of_a_module_is_answered_with_the_module(bot):
    written(bot(), {"suite.yml": SUITE.format(allowed=0).replace("help_desk:answer", "help_desk.py:answer")})
    refused = called("run", "suite.yml")
    assert refused.exit_code == 2
    assert "Did you mean `help_desk:answer`?" in refused.stderr


@pytest.mark.parametrize(("word", "meant"), [("hit-rate", "`hit`"), ("json", "`json-valid`"), ("regexp", "`regex`")])
def test_metric_of_another_tool_is_answered_with_ours(word, meant):
    assert f"Did you mean {meant}" in called("metrics", word).stderr


def test_dataset_without_a_name_is_called_as_its_file(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    written(tmp_path, {"questions.yml": "samples:\n  - { id: a, input: { question: Why? }, expected_output: So. }\n"})
    assert "dataset `questions`, 1 sample" in called("check", "questions.yml").stdout


def test_page_of_a_report_has_the_title_of_its_suite_in_a_folder_that_is_made(bot):
    folder = bot("2 samples")
    result = called("run", "suite.yml", "--to", "reports/of/today/page.html")
    assert result.exit_code == 0
    assert "Wrote `reports/of/today/page.html`, which holds texts" in result.stderr
    page = (folder / "reports" / "of" / "today" / "page.html").read_text(encoding="utf-8")
    assert "<title>deemster report: suite</title>" in page


def test_catalog_names_options_without_types_of_python():
    shown = called("metrics", "g-eval").stdout
    assert "steps             list of texts" in shown
    assert not {"Sequence", "Mapping", "None", "str"} & {*shown.replace("[", " ").split()}


def test_junit_says_why_samples_are_skipped(bot):
    folder = bot("2 samples")
    called("run", "suite.yml", "--quiet", "--to", "junit.xml")
    text = (folder / "junit.xml").read_text(encoding="utf-8")
    assert '<skipped message="did not pass: score 0.0000 against the threshold 0.5' in text
    assert "<system-out>Samples that did not pass are skipped here: the gate decides." in text


def test_sheet_for_labels_holds_only_samples_with_an_output(bot):
    folder = bot("2 samples")
    called("run", "suite.yml", "--quiet")
    assert called("labels", "sheet", "latest", "--n", "4", "--to", "sheet.csv").exit_code == 0
    rows = csv.DictReader((folder / "sheet.csv").read_text(encoding="utf-8-sig").splitlines())
    assert {row["id"] for row in rows} == {"1", "2"}
