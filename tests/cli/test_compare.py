import json
import re
import xml.etree.ElementTree as ET
from pathlib import Path

import pytest

from tests.cli.workspace import called, written

QUESTIONS = 30
SUITE = """\
name: refunds
dataset: golden.yml
target: { outputs: before.yml }
metrics: [exact-match, { rouge-l: { threshold: 0.8 } }]
"""
EVIL = "<script>alert(1)</script> @all [x](http://evil.example) ::error::y ##vso[z]"


def golden_file(count=QUESTIONS):
    samples = (
        f"  - id: q{place:02d}\n    input: {{ question: How many days in case {place}? }}\n"
        f"    expected_output: It takes {place} days.\n    metadata: {{ tags: [{'odd' if place % 2 else 'even'}] }}\n"
        for place in range(count)
    )
    return "name: support\nsamples:\n" + "".join(samples)


def answers(count=QUESTIONS, **others):
    given = {f"q{place:02d}": f"It takes {place} days." for place in range(count)} | others
    lines = (f"  {key}: {json.dumps(text)}" for key, text in given.items())
    return "outputs:\n" + "\n".join(lines) + "\n"


@pytest.fixture
def runs(tmp_path, monkeypatch):
    """A folder with two stored runs, `before` and `now`, and the report of each: two samples break, one is fixed."""
    monkeypatch.chdir(tmp_path)
    written(
        tmp_path,
        {
            "suite.yml": SUITE,
            "golden.yml": golden_file(),
            "before.yml": answers(q04="It takes ages."),
            "now.yml": answers(q00="It takes 40 days.", q03=f"Nobody knows. {EVIL}"),
        },
    )
    for name in ("before", "now"):
        flags = ("--quiet", "--name", name, "--outputs", f"{name}.yml", "--to", f"{name}.json")
        assert called("run", "suite.yml", *flags).exit_code == 0
    return tmp_path


def test_comparison_on_a_terminal(runs, golden):
    done = called("compare", "before", "now")
    assert (done.exit_code, done.stderr) == (0, "")
    golden("cli/compare-runs.txt", done.stdout)
    assert called("compare", "before", "now").stdout == done.stdout


FILES = {"md": "md", "html": "html", "json": "json", "junit": "xml", "github": "summary.md"}


@pytest.mark.parametrize(("form", "file"), FILES.items())
def test_comparison_in_a_file(form, file, runs, golden):
    assert called("compare", "before", "now", "--to", f"{form}:out").exit_code == 0
    golden(f"cli/compare.{file}", re.sub(rb'"tool_version": ".*"', b'"tool_version": "X"', Path("out").read_bytes()))


def test_full_comparison_adds_the_details(runs, golden):
    golden("cli/compare-full.txt", called("compare", "before", "now", "--full").stdout)


def test_suite_of_second_run_says_whether_samples_fail_in_junit(runs):
    def failures(*names):
        return ET.fromstring(called("compare", *names, "--to", "junit:-").stdout)[1].get("failures")

    written(runs, {"suite.yml": SUITE + "junit: samples\n"})
    assert called("run", "suite.yml", "--quiet", "--name", "red", "--outputs", "now.yml").exit_code == 0
    assert (failures("before", "now"), failures("before", "red"), failures("red", "before")) == ("0", "2", "0")
    assert failures("before.json", "now.json") == "0"


def test_reports_are_compared_as_stored_runs_are(runs):
    stored = called("compare", "before", "now", "--to", "-").stdout
    files = called("compare", "before.json", "now.json", "--to", "-").stdout
    one, other = (json.loads(text, parse_float=lambda number: round(float(number), 7)) for text in (stored, files))
    for value in (one, other):
        # A report holds no input of the samples, and no usage of each answer.
        value.update(examples=None, usage=None)
    assert one == other


def test_written_comparison_is_valid(runs):
    called("compare", "before", "now", "--to", "c.json")
    done = called("check", "c.json")
    assert done.exit_code == 0
    assert "comparison of runs" in done.stdout


def test_standard_output_takes_one_format(runs):
    printed = json.loads(called("compare", "before", "now", "--to", "-").stdout)
    assert printed["schema_version"] == "deemster.comparison.v1"
    assert called("compare", "before", "now", "--to", "-", "--to", "html:-").exit_code == 2


def test_place_that_cannot_be_written_is_refused(runs):
    Path("taken").touch()
    done = called("compare", "before", "now", "--to", "taken/c.html")
    assert done.exit_code == 2
    assert "taken/c.html: The report cannot be written: Not a directory." in done.stderr


def test_folder_that_is_missing_is_made(runs):
    done = called("compare", "before", "now", "--to", "made/for/it/c.html")
    assert done.exit_code == 0
    assert Path("made/for/it/c.html").is_file()


def test_redaction_reaches_the_terminal_and_the_files(runs):
    files = ("--to", "c.json", "--to", "c.html")
    done = called("compare", "before", "now", "--without-text", *files)
    assert done.exit_code == 0
    for text in (done.stdout, Path("c.json").read_text(encoding="utf-8"), Path("c.html").read_text(encoding="utf-8")):
        assert "It takes" not in text
        assert "How many days" not in text


def test_output_that_is_left_out_is_not_said_to_be_missing(runs):
    shown = called("compare", "before", "now", "--without-text").stdout
    assert re.search(r"before\s+left out\n\s+now\s+left out\n", shown)
    assert "no output" not in shown


def test_comparison_without_text_says_which_run_is_older_of_which_suite_and_what_it_leaves_out(runs):
    done = called("compare", "before", "now", "--without-text", "--to", "c.html")
    assert done.stderr == "Wrote `c.html`. It holds no texts; ids, tags and scores stay.\n"
    page = Path("c.html").read_text(encoding="utf-8")
    when = r"\(\d{4}-\d\d-\d\d \d\d:\d\d\)"
    assert re.search(f"<title>deemster comparison: baseline {when} to candidate {when}</title>", page)
    assert page.count("</code> of <code>refunds</code>, ") == 2
    left_out = "Left out: questions, answers, expected texts, reasons and messages. Ids, tags and scores stay."
    assert left_out in page
    assert left_out in " ".join(done.stdout.split())


def test_target_that_failed_is_said_where_texts_are_left_out(runs):
    down = "".join(f'{{"id": "q{place:02d}", "error": "down"}}\n' for place in range(QUESTIONS))
    Path("down.jsonl").write_text(down, encoding="utf-8")
    assert called("run", "suite.yml", "--quiet", "--name", "down", "--outputs", "down.jsonl").exit_code == 3
    shown = called("compare", "before", "down", "--without-text").stdout
    assert re.search(r"before\s+left out\n\s+now\s+target_failed\n", shown)


def test_printed_comparison_holds_no_command_for_ci(runs):
    for flags in ((), ("--full",), ("--to", "-"), ("--to", "md:-"), ("--to", "html:-"), ("--to", "junit:-")):
        text = called("compare", "before", "now", *flags).stdout
        assert not re.search(r"^\s*::|##vso\[", text, re.MULTILINE), flags


def test_summary_of_a_job_is_appended_where_github_asks_for_it(runs):
    Path("summary.md").write_text("before\n", encoding="utf-8")
    place = str(Path("summary.md").resolve())
    assert called("compare", "before", "now", GITHUB_STEP_SUMMARY=place).exit_code == 0
    text = Path("summary.md").read_text(encoding="utf-8")
    assert text.startswith("before\n## 2 samples broke (<code>q00</code> and <code>q03</code>), and 1 was fixed ")
    assert called("run", "suite.yml", "--quiet", GITHUB_STEP_SUMMARY=place).exit_code == 0
    assert Path("summary.md").read_text(encoding="utf-8").startswith(text + "## deemster report")


def test_place_of_a_summary_that_does_not_exist_is_passed_over(runs):
    assert called("compare", "before", "now", GITHUB_STEP_SUMMARY="/nowhere/summary.md").exit_code == 0


def test_runs_without_a_common_sample_are_an_error(runs):
    written(runs, {"golden.yml": golden_file().replace("How many", "How few")})
    assert called("run", "suite.yml", "--quiet", "--name", "other").exit_code == 0
    done = called("compare", "before", "other")
    assert done.exit_code == 2
    assert "share no sample" in done.stderr


def test_comment_of_a_run_shows_what_broke_since_the_baseline(runs, golden):
    assert called("baseline", "before").exit_code == 0
    written(runs, {"suite.yml": f"{SUITE}gate: {{ baseline: {{ margin: 0.3, max_newly_failing: 1 }} }}\n"})
    place = str(runs / "summary.md")
    Path(place).touch()
    flags = ("--quiet", "--outputs", "now.yml", "--to", "pr-comment.md")
    done = called("run", "suite.yml", *flags, GITHUB_STEP_SUMMARY=place)
    assert done.exit_code == 1
    golden("cli/run-comment.md", Path("pr-comment.md").read_text(encoding="utf-8"))
    assert "Samples that broke: 2" in Path(place).read_text(encoding="utf-8")


def test_comment_of_a_run_without_a_baseline_shows_questions_unless_redacted(runs):
    again = ("run", "suite.yml", "--quiet", "--outputs", "now.yml", "--to", "pr-comment:c.md")
    for flags, shown in (((), True), (("--without-text",), False)):
        assert called(*again, *flags).exit_code == 0
        text = Path("c.md").read_text(encoding="utf-8")
        assert "Samples that did not pass: 2" in text
        assert ("How many days" in text) is shown


def test_comment_of_a_comparison(runs):
    assert called("compare", "before", "now", "--to", "pr-comment:c.md").exit_code == 0
    text = Path("c.md").read_text(encoding="utf-8")
    assert text.startswith("<!-- deemster comment: refunds -->\n\n**2 samples broke (<code>q00</code> and ")
    assert "<script>" not in text
    assert "@all" not in text


def test_more_than_two_runs_are_ranked(runs, golden):
    done = called("compare", "before", "now", "before.json", "--to", "r.json", "--to", "r.html")
    assert done.exit_code == 0
    golden("cli/compare-ranking.txt", done.stdout)
    ranking = json.loads(Path("r.json").read_text(encoding="utf-8"))
    assert ranking["schema_version"] == "deemster.ranking.v1"
    assert [run["run"]["label"] for run in ranking["runs"]] == ["before", "now", "before"]
    assert called("compare", "before", "now", "before.json", "--to", "-").stdout == Path("r.json").read_text("utf-8")


@pytest.mark.parametrize(
    "flags", [("--margin", "0.1"), ("--full",), ("--confirm", "2"), ("--gate", "suite.yml"), ("--to", "r.xml")]
)
def test_flags_of_two_runs_are_refused_for_more(flags, runs):
    done = called("compare", "before", "now", "before.json", *flags)
    assert done.exit_code == 2
    assert "for two runs" in done.stderr


@pytest.mark.parametrize(
    ("flags", "message"),
    [
        (("--margin", "2"), "Invalid value for '--margin'"),
        (("--margin", "nan"), "Invalid value for '--margin'"),
        (("--set", "confidence=1"), "confidence must be a number above 0 and below 1, not 1."),
        (("--set", "seed=-1"), "seed must be a whole number of at least 0, not -1."),
        (("--margin", "0.1", "--set", "margin=0.2"), "says what a flag of this command says already"),
        (("--margin", "0", "--set", "margin=0.2"), "says what a flag of this command says already"),
    ],
)
def test_impossible_level_margin_or_seed_is_bad_input(flags, message, runs):
    result = called("compare", "before", "now", *flags)
    assert result.exit_code == 2
    assert message in result.stderr


def test_part_is_compared_and_says_so(runs):
    whole = json.loads(called("compare", "before", "now", "--to", "-").stdout)
    samples = json.loads(called("show", "now", "--to", "-").stdout)["samples"]
    changed = {change["row_hash"] for change in whole["changes"]}
    chosen = next(sample["id"] for sample in samples if sample["row_hash"] in changed)
    part = json.loads(called("compare", "before", "now", "--only", f"id:{chosen}", "--to", "-").stdout)
    assert (part["samples"]["paired"], len(part["changes"])) == (1, 1)
    selection = f"--only id:{chosen}"
    assert part["candidate"]["part"] == {"samples": 1, "of": len(samples), "selection": selection}
    assert part["warnings"][0].endswith(f"a part is compared: 1 of {len(samples)} samples, {selection}.")


def test_part_of_report_files_is_that_of_stored_runs(runs):
    first, second = (
        json.loads(called("compare", *names, "--only", "id:*", "--to", "-").stdout)
        for names in (("before", "now"), ("before.json", "now.json"))
    )
    assert first["macro_f1"] == second["macro_f1"]


@pytest.mark.parametrize(
    ("flags", "message"),
    [
        (("--only", "tag:nobody"), "No sample has the tag `nobody`."),
        (("--only", "failed"), "`--only failed` and `--only answered` choose what is run"),
        (("--only", "x"), "says nothing that is known"),
        (("--only", "id:*", "--labels", "viewer"), "leave out `--only`"),
    ],
)
def test_part_that_cannot_be_compared_is_bad_input(runs, flags, message):
    result = called("compare", "before", "now", *flags)
    assert result.exit_code == 2
    assert message in result.stderr
