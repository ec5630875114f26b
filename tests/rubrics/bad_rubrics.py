"""Bad rubrics: a name, a file name, and what the file holds."""

from __future__ import annotations

from typing import NamedTuple


class Mistake(NamedTuple):
    """One bad rubric."""

    name: str
    file: str
    text: str | bytes | None


def _yaml(name: str, text: str) -> Mistake:
    return Mistake(name, "rubric.yaml", text)


def _criterion(name: str, fields: str) -> Mistake:
    lines = "\n".join(f"    {line}" for line in fields.splitlines())
    return _yaml(name, f"criteria:\n  - requirement: Fine.\n  - requirement: It is right.\n{lines}\n")


def _choice(name: str, options: str, fields: str = "") -> Mistake:
    rows = "".join(f"  - {option}\n" for option in options.splitlines())
    return _criterion(name, f"options:\n{rows}{fields}")


MISTAKES = (
    Mistake("there is no file", "rubric.yaml", None),
    Mistake("empty", "rubric.yaml", " \n"),
    Mistake("a format for rows", "rubric.jsonl", '{"requirement": "x"}\n'),
    Mistake("no extension", "rubric", "- requirement: x\n"),
    Mistake("not UTF-8", "rubric.json", b'[{"requirement": "caf\xe9"}]'),
    Mistake("JSON syntax", "rubric.json", '[{"requirement": "x",}]'),
    Mistake("JSON not a number", "rubric.json", '[{"requirement": "x", "weight": NaN}]'),
    Mistake("JSON duplicate key", "rubric.json", '[{"requirement": "x",\n "weight": 1, "weight": 2}]'),
    _yaml("YAML duplicate key", "criteria:\n  - requirement: x\n    requirement: y\n"),
    _yaml("text", "just text\n"),
    _yaml("an empty list", "[]\n"),
    _yaml("no criteria", "criteria: []\n"),
    _yaml("criteria is null", "criteria:\n"),
    _yaml("criteria is a map", "criteria:\n  a: 1\n"),
    _yaml("neither criteria nor sections", "name: x\n"),
    _yaml("criteria and sections", "criteria:\n  - requirement: x\nsections:\n  - criteria:\n      - requirement: y\n"),
    _yaml("rubric and criteria", "rubric:\n  - requirement: x\ncriteria:\n  - requirement: x\n"),
    _yaml("a rubric in a rubric", "rubric:\n  rubric:\n    - requirement: x\n"),
    _yaml("rubric is a number", "rubric: 3\n"),
    _yaml("guidelines twice", "guidelines: a\nrubric:\n  guidelines: b\n  criteria:\n    - requirement: x\n"),
    _yaml("schema version", "schema_version: deemster.rubric.v2\ncriteria:\n  - requirement: x\n"),
    _yaml("misspelt root key", "criteira:\n  - requirement: x\nguideline: y\n"),
    _yaml("version is a number", "version: 2\ncriteria:\n  - requirement: x\n"),
    _yaml("a criterion is text", "- It is right.\n"),
    _yaml("a section is text", "sections:\n  - style\n"),
    _yaml("a section without criteria", "sections:\n  - name: style\n"),
    _yaml("an empty section", "- requirement: x\n- name: style\n  criteria: []\n"),
    _yaml("misspelt section key", "- nmae: style\n  criteria:\n    - requirement: x\n"),
    _yaml("a list of sections with a fault inside", "- name: a\n  criteria:\n    - requirement: x\n      wieght: 2\n"),
    _yaml("requirement is missing", "- weight: 3\n"),
    _yaml("requirement is blank", '- requirement: "  "\n'),
    _criterion("misspelt key", "wieght: 3"),
    _criterion("weight is text", "weight: ten"),
    _criterion("weight is infinite", "weight: 1e999"),
    _criterion("weight is null", "weight: null"),
    _criterion("name is a number", "name: 7"),
    _criterion("the name of a nameless one", "name: criterion 1"),
    _criterion("fatal is text", 'fatal: "yes"'),
    _criterion("scale of a binary criterion", "scale_type: ordinal"),
    _criterion("order of a binary criterion", "order: [a, b]"),
    _criterion("a rule of another kind", "aggregation: mean"),
    _criterion("a misspelt rule", "aggregation: unanimus"),
    _criterion("options is a map", "options: {a: 1}"),
    _criterion("options is empty", "options: []"),
    _criterion("check is text", "check: contains"),
    _criterion("check without a metric", "check: {arg: {}, threshold: 7}"),
    _choice("an option is text", "good\nbad"),
    _choice("one scored option", "{label: a, value: 1}\n{label: b, na: true}"),
    _choice("value out of range", "{label: a, value: 0}\n{label: b, value: 1.5}"),
    _choice("value is missing", "{label: a, value: 0}\n{label: b}"),
    _choice("value is text", "{label: a, value: 0}\n{label: b, value: high}"),
    _choice("na is a number", "{label: a, value: 0}\n{label: b, value: 1}\n{label: c, na: 1}"),
    _choice("misspelt option key", "{label: a, value: 0}\n{lable: b, value: 1}"),
    _choice("a label twice", "{label: Good, value: 0}\n{label: ' good', value: 1}"),
    _choice("a verdict as label", "{label: met, value: 1}\n{label: UNMET, value: 0}\n{label: CANNOT_ASSESS, na: true}"),
    _choice("the abstention with a value", "{label: a, value: 1}\n{label: Cannot Assess / not applicable, value: 0}"),
    _choice("misspelt scale", "{label: a, value: 0}\n{label: b, value: 1}", "scale_type: ordnal"),
    _choice(
        "order of a nominal one", "{label: a, value: 0}\n{label: b, value: 1}", "scale_type: nominal\norder: [a, b]"
    ),
    _choice("order is wrong", "{label: low, value: 0}\n{label: high, value: 1}", "order: [hihg, low, LOW]"),
    _choice("order holds a number", "{label: low, value: 0}\n{label: high, value: 1}", "order: [low, 3]"),
    _choice("order is text", "{label: low, value: 0}\n{label: high, value: 1}", "order: low"),
    _choice("binary rule on a choice", "{label: a, value: 0}\n{label: b, value: 1}", "aggregation: any"),
    _choice(
        "check of a nominal one",
        "{label: a, value: 0}\n{label: b, value: 1}",
        "scale_type: nominal\ncheck: {metric: m}",
    ),
    _yaml(
        "everything at once",
        "schema_version: v1\n"
        "name: ''\n"
        "criteria:\n"
        "  - requirement: ''\n"
        "    weight: .inf0\n"
        "  - name: facts\n"
        "    requirment: x\n"
        "  - name: Facts\n"
        "    requirement: x\n"
        "    options:\n"
        "      - {label: a, value: 0.2}\n"
        "      - {label: b, value: -1}\n",
    ),
)
