"""Bad inputs by group: the difference from the valid suite, and the command that reads it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from tests.cli.workspace import GOLDEN, SUITE

RUN = ("run", "suite.yml")
CODE = SUITE.replace("outputs: answers.yml", "python: 'app:answer'")
ROW = '{"id": "a", "input": {}, "expected_output": "x"}\n'


class Mistake(NamedTuple):
    """One bad input."""

    name: str
    files: Mapping[str, str | bytes | None]
    argv: tuple[str, ...] = RUN


def _dataset(name: str, text: str | bytes | None, file: str = "golden.yml") -> Mistake:
    return Mistake(name, {"golden.yml": None, file: text, "suite.yml": SUITE.replace("golden.yml", file)})


def _sample(name: str, text: str) -> Mistake:
    return _dataset(name, "name: support\nsamples:\n  - " + text.replace("\n", "\n    ") + "\n")


def _suite(name: str, text: str) -> Mistake:
    return Mistake(name, {"suite.yml": text})


def _line(name: str, old: str, text: str) -> Mistake:
    kept = [line for line in SUITE.splitlines() if not line.startswith(old)]
    return _suite(name, "\n".join([*kept, text, ""]))


def _metrics(name: str, entry: str) -> Mistake:
    return _line(name, "metrics", f"metrics:\n  - {entry}")


def _gate(name: str, text: str) -> Mistake:
    return _suite(name, SUITE + "gate:\n" + "".join(f"  {line}\n" for line in text.splitlines()))


def _outputs(name: str, text: str | bytes | None, file: str = "answers.yml", *flags: str) -> Mistake:
    return Mistake(name, {"answers.yml": None, file: text}, (*RUN, "--outputs", file, *flags))


def _flags(name: str, *flags: str) -> Mistake:
    return Mistake(name, {}, (*RUN, *flags))


DATASETS = (
    _dataset("missing", None),
    _dataset("empty", ""),
    _dataset("unknown extension", GOLDEN, "golden.txt"),
    _dataset("not UTF-8", b"name: caf\xe9\nsamples: []\n"),
    _dataset("YAML syntax", "name: [\nsamples:\n  - id: a\n"),
    _dataset("YAML duplicate key", "name: a\nname: b\nsamples: []\n"),
    _dataset("YAML tag", "name: a\nsamples: !!python/object/apply:os.system ['true']\n"),
    _dataset("YAML not a number", "name: a\nsamples:\n  - {id: a, input: {x: .nan}, expected_output: y}\n"),
    _dataset("root is a list", "- id: a\n  input: {}\n  expected_output: x\n"),
    _dataset("schema version", "schema_version: deemster.dataset.v9\n" + GOLDEN),
    _dataset("misspelt root key", GOLDEN.replace("samples:", "sampels:")),
    _dataset("blank name", GOLDEN.replace("name: support", 'name: " "')),
    _dataset("no samples", "name: support\nsamples: []\n"),
    _dataset("repetitions", "repetitions: 0\n" + GOLDEN),
    _sample("misspelt sample key", "id: a\ninput: {}\nexpected: x"),
    _sample("id is a number", "id: 7\ninput: {}\nexpected_output: x"),
    _sample("id is blank", 'id: " "\ninput: {}\nexpected_output: x'),
    _sample("id holds a control character", 'id: "a\\eb"\ninput: {}\nexpected_output: x'),
    _sample("id is too long", f"id: {'a' * 257}\ninput: {{}}\nexpected_output: x"),
    _dataset("id is given twice", GOLDEN + "  - id: window\n    input: {}\n    expected_output: x\n"),
    _sample("input is missing", "id: a\nexpected_output: x"),
    _sample("input is a list", "id: a\ninput: [1]\nexpected_output: x"),
    _sample("expected output is missing", "id: a\ninput: {}"),
    _sample("metadata is a list", "id: a\ninput: {}\nexpected_output: x\nmetadata: [1]"),
    _sample("tags are numbers", "id: a\ninput: {}\nexpected_output: x\nmetadata: {tags: [1]}"),
    _sample("a tag is blank", 'id: a\ninput: {}\nexpected_output: x\nmetadata: {tags: ["", b]}'),
    _dataset("JSON syntax", '{"name": "a",\n "samples": [\n  {"id": "a",}\n]}', "golden.json"),
    _dataset("JSON not a number", '{"name": "a",\n "samples": [{"id": "a", "input": {"x": NaN}}]}', "golden.json"),
    _dataset("JSON duplicate key", '{"name": "a",\n "name": "b",\n "samples": []}', "golden.json"),
    _dataset("JSON nesting", '{"name": "a", "samples": ' + "[" * 200 + "]" * 200 + "}", "golden.json"),
    _dataset("JSONL line is no object", ROW + "[1]\n", "golden.jsonl"),
    _dataset("JSONL duplicate id", ROW + ROW, "golden.jsonl"),
    _dataset("JSONL lone surrogate", ROW.replace('"x"', '"\\ud800"'), "golden.jsonl"),
    _dataset("CSV unknown column", "id,question,expected_output\na,b,c\n", "golden.csv"),
    _dataset("CSV short line", "id,input.q,expected_output\na,b\n", "golden.csv"),
    _dataset("CSV bad JSON cell", 'id,input:json,expected_output\na,"{""q"": ",x\n', "golden.csv"),
    _dataset("CSV column given twice", "id,input.q,input.q,expected_output\na,b,c,d\n", "golden.csv"),
    _dataset("TSV misspelt column", "id\tinput.q\texpected_ouput\na\tb\tc\n", "golden.tsv"),
    _dataset("Parquet is none", b"PAR1 not really", "golden.parquet"),
    _dataset(
        "many faults at once",
        "name: support\nsamples:\n" + "".join(f"  - {{id: {n}, input: {{}}, expected_output: x}}\n" for n in range(23)),
    ),
)

OUTPUTS = (
    _outputs("missing", None),
    _outputs("unknown extension", "x", "answers.md"),
    _outputs("no outputs", "schema_version: deemster.outputs.v1\n"),
    _outputs("outputs are text", "outputs: yes please\n"),
    _outputs("misspelt root key", "output: {}\n"),
    _outputs("a sample without output", "outputs: {window: 30 days}\n"),
    _outputs("an id of no sample", "outputs: {windwo: 30 days, fee: none}\n"),
    _outputs("an output is a number", "outputs:\n  window: 30\n  fee: none\n"),
    _outputs("an output is null", "outputs:\n  window: null\n  fee: none\n"),
    _outputs("neither output nor error", "outputs:\n  - {id: window}\n  - {id: fee, output: none}\n"),
    _outputs("both output and error", "outputs:\n  - {id: window, output: a, error: b}\n"),
    _outputs("misspelt key", "outputs:\n  - {id: window, ouput: a}\n"),
    _outputs("twice", "outputs:\n  - {id: window, output: a}\n  - {id: window, output: b}\n"),
    _outputs("a gap", "outputs:\n  - {id: window, output: a}\n  - {id: window, output: b, repetition: 2}\n"),
    _outputs("unequal repetitions", "outputs:\n  window: [a, b]\n  fee: [a]\n"),
    _outputs("other repetitions", "outputs:\n  window: [a, b]\n  fee: [a, b]\n", "answers.yml", "--repetitions", "3"),
    _outputs("bad trajectory", "outputs:\n  window: {output: a, trajectory: {tool_cals: []}}\n  fee: none\n"),
    _outputs("bad usage", "outputs:\n  window: {output: a, usage: {prompt_tokens: -1}}\n  fee: none\n"),
    _outputs("JSONL syntax", '{"id": "window", "output": "a"}\n{"id": "fee", "output": }\n', "answers.jsonl"),
    _outputs("JSONL misspelt key", '{"id": "window", "output": "a"}\n{"id": "fee", "outptu": ""}\n', "answers.jsonl"),
    _outputs("CSV column", "id,answer\nwindow,a\n", "answers.csv"),
    _outputs("CSV repetition", "id,output,repetition\nwindow,a,first\n", "answers.csv"),
)

SUITES = (
    Mistake("missing", {"suite.yml": None}),
    _suite("empty", ""),
    _suite("a list", "- exact-match\n"),
    _suite("misspelt key", SUITE.replace("metrics:", "metric:")),
    _line("retired keys", "metrics", "metrics: [exact-match]\nuntil_decided: true\njunit_samples: true"),
    _suite("schema version", "schema_version: deemster.suite.v2\n" + SUITE),
    _line("no dataset", "dataset", "description: none"),
    _line("dataset is a list", "dataset", "dataset: [golden.yml]"),
    _line("no target", "target", "seed: 1"),
    _line("two targets", "target", "target: { python: 'app:answer', outputs: answers.yml }"),
    _line("misspelt target", "target", "target: { pyton: 'app:answer' }"),
    _line("target is text", "target", "target: app:answer"),
    _line("target is no path", "target", "target: { python: answer }"),
    _line("target module is missing", "target", "target: { python: 'no_such_module:answer' }"),
    Mistake(
        "target function is missing",
        {"app.py": "def answer(input): ...\n", "suite.yml": CODE.replace("answer", "anser")},
    ),
    Mistake(
        "target module fails",
        {"app.py": "1 / 0\n", "suite.yml": CODE},
    ),
    Mistake(
        "target is no function",
        {"app.py": "answer = 42\n", "suite.yml": CODE},
    ),
    Mistake(
        "target takes two arguments",
        {"app.py": "def answer(a, b): ...\n", "suite.yml": CODE},
    ),
    _line("unset variable", "target", "target: { outputs: '${DEEMSTER_TEST_UNSET}.yml' }"),
    _line("http without an address", "target", "target: { http: { method: POST } }"),
    _line("http to no address", "target", "target: { http: 'localhost:8000/ask' }"),
    _line("misspelt key of http", "target", "target: { http: { url: 'http://localhost/', outputs: answer } }"),
    _line(
        "several faults of http",
        "target",
        "target:\n  http:\n    url: http://localhost/\n    method: PSOT\n    retries: many\n    rpm: 0\n"
        "    headers: { Host: elsewhere, X-Number: 7 }\n    output: choices..text\n    api_key: hunter2-hunter2\n"
        "    body: { q: '{{imput.question}}', gold: '{{expected_output}}', deep: ['{{question}}'] }",
    ),
    _line("a key in place of its variable", "target", "target: { http: { url: 'http://h/', api_key_env: sk-12-34 } }"),
    _line("an unset key", "target", "target: { http: { url: 'http://h/', api_key_env: DEEMSTER_TEST_UNSET } }"),
    _line("a body with GET", "target", "target: { http: { url: 'http://h/', method: GET, body: { q: 1 } } }"),
    _line("command is text", "target", "target: { command: 'python app.py' }"),
    _line("command holds a number", "target", "target: { command: [sleep, 1] }"),
    _line("no such program", "target", "target: { command: [no-such-program-here] }"),
    _line("no such folder", "target", "target: { command: { argv: [cat], cwd: nowhere } }"),
    _line(
        "several faults of a command",
        "target",
        "target: { command: { argv: [cat], timout_s: 3, env: [DEEMSTER_TEST_UNSET], output: jsn, concurrency: 1-4 } }",
    ),
    _line("faults of a function's settings", "target", "target: { python: { timeout_s: 0, function: 'app:answer' } }"),
    _line("a function without its path", "target", "target: { python: { retries: 1 } }"),
    _line("no metrics", "metrics", "metrics: []"),
    _line("repetitions", "name", "repetitions: 0"),
    _line("seed", "name", "seed: -1"),
    _line("concurrency", "name", "limits: { concurrency: none }"),
    _line("strict is text", "name", "strict: yes"),
    _line("delta is zero", "name", "delta: 0"),
    _line("delta is above one", "name", "delta: 5"),
    _line("what fails in JUnit", "name", "junit: sample"),
    _line("misspelt limit", "name", "limits: { concurency: 4 }"),
    _suite("several faults", "dataset: 7\nmetrics: exact-match\nseeds: 1\n"),
)

METRICS = (
    _metrics("misspelt metric", "rogue-l"),
    _metrics("unknown metric", "vibes"),
    _metrics("misspelt option", "rouge-l: { treshold: 0.7 }"),
    _metrics("threshold above one", "rouge-l: { threshold: 7 }"),
    _metrics("threshold is text", "rouge-l: { threshold: high }"),
    _metrics("options are a list", "rouge-l: [0.7]"),
    _metrics("entry is a number", "7"),
    _metrics("two in one entry", "{ rouge-l: {}, exact-match: {} }"),
    _metrics("two of one name", "rouge-l\n  - rouge-l: { threshold: 0.3 }"),
    _metrics("scale of one grade", "ordinal-distance: { scale: [low] }"),
    _metrics("bad pattern", "regex: { pattern: '(' }"),
    _metrics("cut-off is zero", "ndcg@0"),
    _metrics("bad spec", "ndcg(gain=exponential@10"),
    _metrics("bad schema", "json-schema: { schema: { type: nonsense } }"),
    _metrics("import path without module", "no_such_module:Tone"),
    Mistake(
        "import path without name",
        {"scoring.py": "class Tone: ...\n", "suite.yml": SUITE.replace("exact-match", "'scoring:Tune'")},
    ),
    Mistake(
        "import path of no metric",
        {"scoring.py": "class Tone: ...\n", "suite.yml": SUITE.replace("exact-match", "'scoring:Tone'")},
    ),
    Mistake(
        "malformed sample",
        {
            "suite.yml": SUITE.replace("exact-match", "regex"),
            "golden.yml": GOLDEN.replace("30 days", "'('"),
        },
    ),
    Mistake(
        "absent in strict mode",
        {"golden.yml": GOLDEN.replace("none", "null"), "suite.yml": SUITE + "strict: true\n"},
    ),
    Mistake("description of an unknown metric", {}, ("metrics", "rouge")),
)

GATES = (
    _gate("misspelt rule", "min_macrof1: 0.9"),
    _gate("bound above one", "min_macro_f1: 90"),
    _gate("bound is text", "min_pass_rate: high"),
    _gate("unknown metric", "metrics: { exact-macth: { min_mean: 0.5 } }"),
    _gate("unknown metric rule", "metrics: { exact-match: { min_median: 0.5 } }"),
    _gate("unknown cohort", "cohorts: { polcy: { min_pass_rate: 0.5 } }"),
    _gate("unknown cohort rule", "cohorts: { policy: { pass_rate: 0.5 } }"),
    _gate("cohort is a number", "cohorts: { policy: 0.5 }"),
    _gate("min_samples", "cohorts: { policy: { min_samples: some } }"),
    _gate("on", "metrics: { exact-match: { min_mean: 0.5, on: upper } }"),
    _gate("decision", "decision: maybe"),
    _gate("max_unscored", "max_unscored: 101%"),
    _gate("max_unscored is text", "max_unscored: few"),
    _gate("budget", "budget: { max_cost: 1 }"),
    _gate("two faults", "min_macro_f1: -1\nmetrics: 7"),
)

FLAGS = (
    Mistake("unknown command", {}, ("rnu", "suite.yml")),
    Mistake("no suite", {}, ("run", "suit.yml")),
    _flags("unknown flag", "--ofline"),
    _flags("retired flag", "--strict"),
    _flags("retired flag with a value", "--delta", "0.1"),
    _flags("flag that another command had", "--cost", "3"),
    Mistake("retired flag of one command", {}, ("agreement", "votes.json", "--strong", "b", "--cascade", "a")),
    Mistake("retired export", {}, ("export", "latest", "--as", "promptfoo", "--to", "run.json")),
    Mistake("export to an unknown ending", {}, ("export", "latest", "--to", "run.pdf")),
    Mistake("samples of no kind", {}, ("export", "latest", "--to", "golden.yml")),
    _flags("repetitions is zero", "--repetitions", "0"),
    _flags("repetitions is text", "--repetitions", "many"),
    _flags("concurrency is zero", "--concurrency", "0"),
    _flags("threshold without name", "--threshold", "0.5"),
    _flags("threshold is text", "--threshold", "exact-match=high"),
    _flags("threshold above one", "--threshold", "exact-match=2"),
    _flags("threshold is not a number", "--threshold", "exact-match=nan"),
    _flags("threshold of another metric", "--threshold", "exact=0.5"),
    _flags("unknown metric", "--metric", "exact-macth"),
    _flags("retired privacy level", "--redact", "output"),
    _flags("two reports on stdout", "--to", "-", "--to", "csv:-"),
    _flags("two reports in one file", "--to", "json:report", "--to", "csv:./report"),
    _flags("folder of the report is a file", "--to", "suite.yml/report.json"),
    Mistake("report is a folder", {"reports/keep": ""}, (*RUN, "--to", "md:reports")),
    Mistake("init over a suite", {}, ("init", ".")),
    Mistake("completion of an unknown shell", {}, ("completion", "tcsh")),
    Mistake("validate something missing", {}, ("check", "nothing.yml")),
    Mistake("validate as something else", {}, ("check", "golden.yml", "--as", "suite")),
)

REPORTS = (
    Mistake("missing", {}, ("show", "run.json")),
    Mistake("empty", {"run.json": ""}, ("show", "run.json")),
    Mistake("JSON syntax", {"run.json": '{"schema_version": "deemster.report.v1"'}, ("show", "run.json")),
    Mistake("schema version", {"run.json": '{"schema_version": "deemster.report.v2"}'}, ("show", "run.json")),
    Mistake("a list", {"run.json": "[]"}, ("show", "run.json")),
    Mistake("a dataset", {}, ("show", "golden.yml")),
    Mistake("cut short", {"run.json": '{"schema_version": "deemster.report.v1"}'}, ("show", "run.json")),
    Mistake("validated", {"run.json": '{"schema_version": "deemster.report.v1", "runs": 1}'}, ("check", "run.json")),
)

_ITEM = '{"id": "q1", "ground_truth": ["MET"], "votes": {"a": ["MET"]}}'
_VOTES = """\
{"schema_version": "deemster.votes.v1",
 "rubric": {"criteria": [{"name": "facts", "requirement": "True."}]},
 "judges": [{"id": "a"}],
 "items": [
  ITEM
 ]}
"""
_WHOLE = _VOTES.replace("ITEM", _ITEM)


def _item(name: str, text: str, *flags: str) -> Mistake:
    return Mistake(name, {"votes.json": _VOTES.replace("ITEM", text)}, ("agreement", "votes.json", *flags))


ALIGNMENTS = (
    Mistake("missing", {}, ("agreement", "votes.json")),
    Mistake("empty", {"votes.json": ""}, ("agreement", "votes.json")),
    Mistake("YAML", {"votes.yml": "items: []\n"}, ("agreement", "votes.yml")),
    Mistake("schema version", {"votes.json": _WHOLE.replace("votes.v1", "votes.v9")}, ("agreement", "votes.json")),
    Mistake("misspelt key", {"votes.json": _WHOLE.replace("judges", "judgs")}, ("agreement", "votes.json")),
    _item("no items", ""),
    _item("unknown label", '{"id": "q1", "ground_truth": ["MAYBE"], "votes": {"a": ["MTE"]}}'),
    _item("unknown judge", '{"id": "q1", "ground_truth": ["MET"], "votes": {"b": ["MET"]}}'),
    _item("wrong length", '{"id": "q1", "ground_truth": ["MET", "MET"], "votes": {"a": []}}'),
    _item("not a number", '{"id": "q1", "ground_truth": ["MET"], "votes": {"a": [{"verdict": "MET", "p": NaN}]}}'),
    _item("id is given twice", f"{_ITEM},\n  {_ITEM}"),
    _item("nothing is labelled", '{"id": "q1", "votes": {"a": ["MET"]}}'),
    _item("no such cluster", _ITEM, "--set", "cluster=author"),
    _item("unknown mode", _ITEM, "--set", "cannot_assess=as_met"),
    _item("unknown method", _ITEM, "--set", "bootstrap=bac"),
    _item("level of the intervals", _ITEM, "--set", "confidence=95"),
    _item("negative seed", _ITEM, "--set", "seed=-1"),
    _item("no replicates", _ITEM, "--set", "n_bootstrap=0"),
    _item("two results on stdout", _ITEM, "--to", "-", "--to", "md:-"),
    _item("folder of the result is a file", _ITEM, "--to", "votes.json/result.json"),
    _item("labels are missing", _ITEM, "--labels", "labels.json"),
    Mistake("a result cut short", {"r.json": '{"schema_version": "deemster.alignment.v1"}'}, ("check", "r.json")),
)
