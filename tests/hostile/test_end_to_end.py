"""Hostile datasets and outputs through `deemster run`: a clear error or a normal report, and soon."""

from __future__ import annotations

import json
import re
import time

import pytest

from tests.cli.workspace import SUITE, called, written

JSON_SUITE = SUITE.replace("golden.yml", "golden.json").replace("answers.yml", "answers.json")
HIDDEN = re.compile("[\x00-\x09\x0b-\x1f\x7f-\x9f\u061c\u200b\u200e\u200f\u2028-\u202e\u2060-\u2069\ufeff]")
SECONDS = 4.0


def ran(folder, files, *argv):
    """Run a suite over files; nothing may take long, show a traceback or write a control character."""
    written(folder, files)
    started = time.process_time()
    result = called("run", "suite.yml", *argv)
    assert time.process_time() - started < SECONDS
    assert result.exit_code in (0, 2, 3)
    assert "Traceback" not in result.stderr
    shown = result.stdout + result.stderr if "-" not in argv else result.stderr
    assert not HIDDEN.search(shown)
    assert [line for line in shown.splitlines() if line.lstrip().startswith("::")] == []
    return result


def yaml(folder, text):
    return ran(folder, {"suite.yml": SUITE, "golden.yml": text, "answers.yml": "outputs: {a: x}\n"})


def refused(result):
    assert (result.exit_code, result.stdout) == (2, "")
    return result.stderr


def sample(expected="x", name="a", **more):
    return {"id": name, "input": {}, "expected_output": expected, **more}


def scored(folder, samples, outputs, *metrics, raw=lambda text: text, flags=()):
    """The report of a run over samples and outputs in JSON."""
    files = {
        "suite.yml": JSON_SUITE,
        "golden.json": raw(json.dumps({"name": "hostile", "samples": samples})),
        "answers.json": raw(json.dumps({"outputs": outputs})),
    }
    chosen = [flag for metric in metrics or ("exact-match",) for flag in ("--metric", metric)]
    result = ran(folder, files, *chosen, "--to", "run.json", *flags)
    path = folder / "run.json"
    return result, json.loads(path.read_text()) if path.exists() else None


@pytest.mark.parametrize(
    "tag",
    ["!!python/object/apply:os.system ['touch owned']", "!!binary aGk=", "!include /etc/passwd", "!!set {a}", "!x y"],
)
def test_yaml_tag_is_refused_and_runs_nothing(folder, tag):
    said = refused(yaml(folder, f"name: d\nsamples:\n  - id: a\n    input: {{}}\n    expected_output: {tag}\n"))
    assert "golden.yml:5" in said
    assert "Tags are not read" in said
    assert not (folder / "owned").exists()


def test_alias_bomb_is_refused(folder):
    levels = "".join(f"x{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 9)}]\n" for n in range(1, 10))
    said = refused(yaml(folder, f"name: d\nx0: &a0 [lol]\n{levels}samples: []\n"))
    assert "Too many aliases" in said


def test_wide_alias_bomb_of_long_text_is_refused_or_bounded(folder):
    text = "name: d\nbig: &b " + "x" * 10_000 + "\nsamples:\n  - id: a\n    input: {q: [" + "*b, " * 5000 + "*b]}\n"
    refused(yaml(folder, text))


@pytest.mark.parametrize(
    "text",
    [
        "name: d\nname: e\nsamples: []\n",
        "name: d\nsamples:\n  - {id: a, id: b, input: {}, expected_output: x}\n",
        "name: d\nsamples:\n  - {id: a, input: {q: 1, q: 2}, expected_output: x}\n",
    ],
)
def test_duplicate_key_is_refused(folder, text):
    assert "is given twice" in refused(yaml(folder, text))


@pytest.mark.parametrize("value", [".nan", ".inf", "-.inf", ".NaN"])
def test_invalid_yaml_numbers_are_error(folder, value):
    said = refused(yaml(folder, f"name: d\nsamples:\n  - id: a\n    input: {{q: {value}}}\n    expected_output: x\n"))
    assert "golden.yml:4" in said


@pytest.mark.parametrize("value", ["NaN", "Infinity", "-Infinity", "1e999", "-1e999"])
def test_invalid_json_numbers_are_error(folder, value):
    result, report = scored(folder, [sample("PLACE")], {"a": "x"}, raw=lambda text: text.replace('"PLACE"', value))
    assert "golden.json:1" in refused(result)
    assert report is None


@pytest.mark.parametrize("depth", [101, 1000, 100_000])
@pytest.mark.parametrize(("opening", "closing"), [("[", "]"), ('{"a":', "}")])
def test_deep_json_is_refused(folder, depth, opening, closing):
    deep = opening * depth + "1" + closing * depth
    result, _ = scored(folder, [sample("PLACE")], {"a": "x"}, raw=lambda text: text.replace('"PLACE"', deep))
    assert "Nesting goes deeper than 100" in refused(result)


@pytest.mark.parametrize("depth", [101, 5000])
def test_deep_yaml_is_refused(folder, depth):
    said = refused(yaml(folder, "name: d\nsamples: " + "[" * depth + "]" * depth + "\n"))
    assert "Nesting goes deeper than 100" in said


def test_deep_line_of_saved_outputs_is_refused(folder):
    files = {
        "suite.yml": SUITE.replace("answers.yml", "answers.jsonl"),
        "golden.yml": "name: d\nsamples:\n  - {id: a, input: {}, expected_output: x}\n",
        "answers.jsonl": '{"id": "a", "output": "x", "retrieved": ' + "[" * 5000 + "]" * 5000 + "}\n",
    }
    assert "esting goes deeper than 100" in refused(ran(folder, files))


@pytest.mark.parametrize("depth", [100, 10_000, 200_000])
def test_deep_json_in_an_output_is_a_mark_and_not_a_crash(folder, depth):
    result, report = scored(folder, [sample({"a": 1})], {"a": "[" * depth + "]" * depth}, "json-valid", "json-match")
    assert result.exit_code in (0, 3)
    assert report["totals"]["executions"] == 1


def test_five_thousand_digits_in_dataset_are_error_with_line(folder):
    result, _ = scored(folder, [sample("PLACE")], {"a": "x"}, raw=lambda text: text.replace('"PLACE"', "9" * 5000))
    assert "golden.json:1" in refused(result)
    assert "digits" in result.stderr


def test_five_thousand_digits_in_an_output_are_text(folder):
    result, report = scored(folder, [sample(1)], {"a": "9" * 5000}, "numeric-close", "json-match", "json-valid")
    assert result.exit_code in (0, 3)
    assert report["executions"][0]["output"] == "9" * 5000


def test_longest_allowed_numbers_round_trip_through_run(folder):
    def long(text):
        return text.replace('"PLACE"', "9" * 4000)

    outputs = {"a": {"output": "x", "retrieved": ["PLACE"]}}
    result, _ = scored(folder, [sample("PLACE")], outputs, "json-valid", raw=long)
    assert result.exit_code == 0
    assert called("show", "run.json", "--to", "again.json").exit_code == 0
    assert (folder / "again.json").read_bytes() == (folder / "run.json").read_bytes()


ESCAPES = "\x1b[2J\x1b]0;owned\x07\x9b31m\u202egnp.exe\u2066\u200b\ufeff"


def test_terminal_escapes_in_an_id_are_refused(folder):
    said = refused(scored(folder, [sample(name=f"a{ESCAPES}")], {f"a{ESCAPES}": "x"})[0])
    assert "\\x1b[2J" in said


def test_bidi_characters_in_ids_tags_outputs_and_errors_reach_no_terminal(folder):
    name = "a\u202egnp.exe\u2066"
    samples = [sample(name=name, metadata={"tags": ["t\u202e\u200b"]}), sample(name="b")]
    outputs = [{"id": name, "output": ESCAPES}, {"id": "b", "error": ESCAPES}]
    result, report = scored(folder, samples, outputs)
    assert result.exit_code == 3
    assert "\\u202e" in result.stdout
    assert report["samples"][0]["id"] == name


@pytest.mark.parametrize("name", ["::error::x", "::set-output name=a::b", "  ::error::x", "a ::error::x " * 15])
def test_ci_commands_in_ids_tags_and_messages_start_no_line(folder, name):
    samples = [sample(name=name, metadata={"tags": [name]}), sample(name="b")]
    outputs = [{"id": name, "error": name}, {"id": "b", "error": f"x\n{name}"}]
    result, report = scored(folder, samples, outputs)
    assert result.exit_code == 3
    assert report["samples"][0]["id"] == name


@pytest.mark.parametrize("sign", ["=", "+", "-", "@", "\uff1d", "\uff0b", "\uff0d", "\uff20"])
def test_formulas_in_ids_and_messages_are_guarded_in_csv(folder, sign):
    formula = f"{sign}HYPERLINK(1)"
    outputs = [{"id": formula, "error": formula}]
    scored(folder, [sample(name=formula)], outputs, flags=("--to", "run.csv"))
    line = (folder / "run.csv").read_text().splitlines()[1]
    assert line.startswith(f"'{formula},")
    assert line.endswith(f",'{formula}")


def test_markup_in_ids_and_messages_is_escaped_in_markdown_html_and_junit(folder):
    markup = '<script>alert(1)</script>"><img src=x onerror=alert(1)>[x](http://evil.example)|`@all #1'
    outputs = [{"id": markup, "error": markup}]
    flags = ("--to", "r.md", "--to", "r.html", "--to", "r.xml", "--to", "github:r.gh")
    scored(folder, [sample(name=markup, metadata={"tags": [markup]})], outputs, flags=flags)
    for name in ("r.md", "r.html", "r.xml", "r.gh"):
        text = (folder / name).read_text()
        assert not re.search("<script|<img|onerror=alert.1.>", text), name
        if name != "r.xml":
            assert not re.search(r"http://evil|\[x\]|@all", text), name


@pytest.mark.parametrize("pattern", ["(a+)+$", "(a|aa)+$", "(.*a){20}$", "^(([a-z])+.)+[A-Z]([a-z])+$"])
def test_catastrophic_pattern_ends_soon(folder, pattern):
    result, report = scored(folder, [sample(pattern)], {"a": "a" * 50_000 + "!"}, "regex")
    assert result.exit_code == 0
    assert "score" in report["executions"][0]["marks"]["regex"]


@pytest.mark.parametrize("pattern", ["(?:a{1000}){1000}", "(a{1,1000}){1,1000}", "x{100000}"])
def test_pattern_that_would_need_much_memory_is_refused_or_scored(folder, pattern):
    assert scored(folder, [sample(pattern)], {"a": "a" * 1000}, "regex")[0].exit_code in (0, 2, 3)


@pytest.mark.parametrize(
    "text", ["file:///etc/passwd", "@/etc/passwd", "@answers.json", "${HOME}", "{{ 7 * 7 }}", "$(id)"]
)
def test_text_like_placeholder_or_reference_stays_text(folder, text):
    _, report = scored(folder, [sample(text)], {"a": text}, "exact-match")
    assert report["executions"][0]["output"] == text
    assert report["samples"][0]["expected_output"] == text
    assert report["executions"][0]["marks"]["exact-match"]["score"] == 1.0


@pytest.mark.parametrize("reference", ["file:///etc/passwd", "http://127.0.0.1:9/x", "golden.json"])
def test_schema_reads_no_file_and_opens_no_connection(folder, reference):
    samples = [sample(metadata={"json_schema": {"$ref": reference}})]
    result, _ = scored(folder, samples, {"a": "{}"}, "json-schema")
    assert result.exit_code in (2, 3)
    assert "root:" not in result.stderr


def test_huge_single_line_is_read(folder):
    text = "x" * 8_000_000
    result, report = scored(folder, [sample(text)], {"a": text})
    assert result.exit_code == 0
    assert report["executions"][0]["output_cut"]


def test_huge_single_line_that_is_cut_short_is_refused(folder):
    def cut(text):
        return text[:-3]

    result, _ = scored(folder, [sample("x" * 8_000_000)], {"a": "x"}, raw=cut)
    assert len(refused(result)) < 500


def test_huge_issue_is_reported_briefly(folder):
    key = "k" * 100_000
    result, _ = scored(folder, [sample(**{key: 1})], {"a": "x"})
    assert len(refused(result)) < 5000


def test_one_hostile_output_changes_no_other_mark(folder):
    names = ("a", "b", "c")
    outputs = {"a": "x", "b": "[" * 100_000 + ESCAPES, "c": "x"}
    _, report = scored(folder, [sample(name=name) for name in names], outputs, "exact-match", "json-valid", "rouge-l")
    assert report["executions"][0]["marks"] == report["executions"][2]["marks"]


def test_received_report_runs_no_code_of_the_metrics_it_names(folder):
    scored(folder, [sample()], {"a": "x"})
    text = (folder / "run.json").read_text().replace('"spec": "exact-match"', '"spec": "hostile_plugin:Owned"')
    written(folder, {"received.json": text, "hostile_plugin.py": "open('owned', 'w').close()\n"})
    assert called("show", "received.json", "--without-text", "--to", "again.json").exit_code == 0
    assert not (folder / "owned").exists()
