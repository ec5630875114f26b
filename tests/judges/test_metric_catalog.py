"""Names to metrics."""

import importlib
import subprocess
import sys
from importlib.metadata import EntryPoint
from typing import Any

import pytest

import deemster as dm
from deemster.errors import ConfigurationError
from deemster.judges import metric_catalog as catalog
from deemster.judges._metric_table import PLACES, PRESETS, SHORT, TABLE
from deemster.metrics.function_metric import metric
from deemster.metrics.json_validity import JsonValid
from deemster.metrics.ordinal_distance import OrdinalDistance
from deemster.records import MetricScore, Output, Sample


@metric("decorated", version="3", quotes=["said"])
def decorated(actual):
    return 1


class Tone:
    def __init__(self, name="tone", level=1):
        if level < 0:
            raise ConfigurationError("`level` of tone is not negative.")
        self.name = name
        self.level = level

    def score(self, sample, output):
        return MetricScore(1.0)


class Silent:
    name = "silent"


class NamedByMethod:
    def name(self):
        return "by-method"

    def score(self, sample, output):
        return MetricScore(1.0)


class FewerIsBetter:
    name = "words"
    threshold = 0.2
    higher_is_better = False

    def score(self, sample, output):
        return MetricScore(len(output.text) / 10)


@pytest.fixture
def plugins(monkeypatch):
    """Installs entry points; the catalog forgets them afterwards."""

    def install(**points):
        found = [EntryPoint(name.replace("_", "-"), value, catalog.GROUP) for name, value in points.items()]
        monkeypatch.setattr("importlib.metadata.entry_points", lambda group: found)
        catalog._plugins.cache_clear()

    yield install
    catalog._plugins.cache_clear()


def refused(entry, **options):
    with pytest.raises(ConfigurationError) as caught:
        catalog.resolve(entry, **options)
    return str(caught.value)


@pytest.fixture
def module(tmp_path):
    """Writes a module of the user's and forgets it afterwards."""
    written = []

    def write(name, text):
        (tmp_path / f"{name}.py").write_text(text, encoding="utf-8")
        written.append(name)
        return tmp_path

    yield write
    for name in written:
        sys.modules.pop(name, None)


@pytest.mark.parametrize("alias", PLACES)
def test_metric_table_matches_classes(alias):
    rubric = '(rubric={"criteria":[{"requirement":"It is right."}]})'
    needed = {"length-within": "(max=5)", "g-eval": "(criteria=x)", "rubric": rubric}
    made = catalog.parse_metric(alias + needed.get(alias, ""))
    assert made.alias == alias
    assert alias in TABLE[made.family]
    assert SHORT.get(made.short) == (alias if made.short else None)
    assert made.name == alias


def test_core_has_fifteen_metrics_and_eleven_without_model():
    core = [entry.name for entry in catalog.entries() if entry.core]
    assert len(core) == 15
    assert sum(hasattr(catalog.parse_metric(alias), "score") for alias in core) == 11


def test_misspelt_name_suggests_nearest():
    assert refused("rogue-l") == "No metric is called `rogue-l`. Did you mean `rouge-l`?"
    assert refused({"rogue-l": {"threshold": 0.7}}) == "No metric is called `rogue-l`. Did you mean `rouge-l`?"
    assert refused("zzzzzz").startswith("No metric is called `zzzzzz`. Known: `exact-match`")


@pytest.mark.parametrize(
    ("text", "canonical", "name"),
    [
        ("rouge-l", "rouge-l", "rouge-l"),
        ("ndcg@10", "ndcg@10", "ndcg@10"),
        ("retrieval-ndcg-at-k@10", "ndcg@10", "ndcg@10"),
        ("ndcg(gain=exponential)@10", "ndcg(gain=exponential)@10", "ndcg@10"),
        ("ndcg(gain=linear)", "ndcg", "retrieval-ndcg-at-k"),
        ("mrr", "mrr", "retrieval-mrr"),
        ("map", "map", "retrieval-map"),
        ("rprec", "rprec", "retrieval-r-precision"),
        ("exact-match(normalize=true)", 'exact-match(normalize=["nfc","casefold","strip"])', "exact-match"),
        ("tool-called(tools=search)", 'tool-called(tools=["search"])', "tool-called"),
        ("tool-not-called(threshold=1)", "tool-not-called", "tool-not-called"),
        ('rouge-l(name="my rouge",threshold=0.7)', 'rouge-l(name="my rouge",threshold=0.7)', "my rouge"),
    ],
)
def test_spec_round_trips(text, canonical, name):
    made = catalog.parse_metric(text)
    assert (str(made), made.name) == (canonical, name)
    assert catalog.parse_metric(str(made)) == made


def test_options_in_both_map_and_spec_are_error():
    made = catalog.resolve({"rouge-l": {"threshold": 0.7, "name": "rouge-strict"}})
    assert (made.name, made.threshold) == ("rouge-strict", 0.7)
    assert catalog.resolve({"rouge-l": None}) == catalog.parse_metric("rouge-l")
    assert catalog.resolve({"ndcg@3": {"gain": "exponential"}}) == catalog.parse_metric("ndcg(gain=exponential)@3")
    assert "given twice" in refused({"ndcg@3": {"k": 4}})


@pytest.mark.parametrize(
    ("entry", "message"),
    [
        ("exact-match@5", "takes no `@k`"),
        ({"exact-match": {"k": 5}}, "takes no `@k`"),
        ("ndcg@0", "whole number of at least 1"),
        ("ndcg@x", "whole number of at least 1"),
        ("", "begins with a metric's name"),
        ("rouge-l(treshold=0.7)", "`rouge-l` has no option `treshold`. Did you mean `threshold`?"),
        ({"rouge-l": {"threshold": 7}}, "between 0 and 1"),
        ({"rouge-l": {"name": 5}}, "`name` of `rouge-l` is non-blank text"),
        ({"rouge-l": {"name": " "}}, "`name` of `rouge-l` is non-blank text"),
        ({"rouge-l": [1]}, "are a map"),
        ({"rouge-l": {1: 2}}, "have names"),
        ({5: None}, "name is text"),
        ({}, "a map of one name"),
        ({"a": 1, "b": 2}, "a map of one name"),
        ("length-within", "min"),
        (5, "is no metric"),
        (None, "is no metric"),
        (JsonValid, "is a class; give an instance, such as `JsonValid()`"),
        (Silent(), "is no metric: it needs a `name` and a `score(sample, output)`"),
        (len, "becomes one with `@deemster.metric`"),
        (NamedByMethod(), 'Here `name` is a method: make it an attribute, such as `name = "tone"`.'),
        ("app.scoring.Tone", "A metric of your own has a colon before its name: `app.scoring:Tone`."),
        ({"mine": {"use": "app:TONE"}}, "write `app:TONE: {name: mine}`"),
    ],
)
def test_invalid_metric_name_is_error(entry, message):
    assert message in refused(entry)


def test_instance_is_bound_under_a_name_of_ones_own():
    metrics = [{"mine": Tone()}, {"yours": Tone()}]
    report = dm.evaluate([{"id": "a", "input": {}, "expected_output": None}], outputs={"a": "x"}, metrics=metrics)
    assert list(report.metrics) == ["mine", "yours"]


def test_class_attributes_of_a_metric_count_for_the_marks_it_returns():
    data = [{"id": name, "input": {}, "expected_output": None} for name in ("short", "long")]
    outputs = {"short": "a", "long": "abcdef"}
    report = dm.evaluate(data, outputs=outputs, metrics=[FewerIsBetter()])
    assert (report.metrics["words"].threshold, report.metrics["words"].n_passed) == (0.2, 1)


def test_option_without_its_name_is_a_configuration_error():
    with pytest.raises(ConfigurationError, match=r"write OrdinalDistance\(scale=...\)"):
        OrdinalDistance(["low", "high"])


def test_metric_instance_is_returned_unchanged():
    for instance in (OrdinalDistance(scale=["a", "b"]), decorated, Tone()):
        assert catalog.resolve(instance) is instance


def saying(parameters, method="score"):
    """A metric whose method has the given parameters and keeps what it is given as its second one."""
    names = {"dm": dm, "Any": Any, "kept": []}
    body = f"class Saying:\n    name = 'saying'\n    def {method}(self, {parameters}):\n"
    body += "        kept.append(list(locals().values())[2])\n        return 1.0\n"
    body += "        yield\n" if method == "script" else ""
    exec(body, names)
    return names["Saying"](), names["kept"]


@pytest.mark.parametrize(
    "parameters",
    [
        "sample, actual_output: str",
        "sample, actual_output",
        "s, text",
        "sample: dm.Sample, answer: str",
        "case: 'dm.Sample', said: 'str | None'",
        "_, actual: Any, other=None",
        # As of a name that is imported for type checkers only.
        "given: 'elsewhere.Sample', output: 'str'",
    ],
)
def test_parameter_named_or_annotated_as_text_gets_text(parameters):
    made, kept = saying(parameters)
    found = catalog.resolve(made)
    assert found.score(Sample("s", {}), Output("the text")) == 1.0
    assert kept == ["the text"]
    assert found.score(Sample("s", {}), Output("\ud800")).cause == "bad_output"
    assert catalog.card(found)[:3] == (
        "saying",
        f"{type(made).__module__}:Saying",
        f"{type(made).__module__}:Saying v1",
    )


@pytest.mark.parametrize(
    "parameters",
    [
        "sample, output",
        "s, o",
        "_sample, _output",
        "_, __",
        "*given",
        "sample, output: Any",
        "sample, o: object",
        "x: dm.Sample, y: dm.Output",
        "sample, actual: dm.Output",
        "x: 'dm.Sample', y: 'elsewhere.Output'",
    ],
)
def test_parameter_that_says_output_or_nothing_gets_output(parameters):
    made, _ = saying(parameters)
    assert catalog.resolve(made) is made


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ("expected, actual", "Its parameter `expected` is no sample. A function that reads `expected` and `actual`"),
        ("expected: str, actual: str", "Its parameter `expected: str` is no sample."),
        ("sample: dict, output", "Its parameter `sample: dict` is no sample."),
        ("sample, prediction", "or the output's text as `actual_output: str`. Its parameter `prediction` is neither."),
        ("sample, output: dict", "Its parameter `output: dict` is neither."),
        ("sample, actual_output: bytes", "Its parameter `actual_output: bytes` is neither."),
        ("actual", "takes a sample and an output: `score(self, sample, output)`, not `score(actual)`."),
        ("sample, output, context", "not `score(sample, output, context)`."),
        ("*, sample, output", "not `score(*, sample, output)`."),
    ],
)
def test_unknown_parameter_is_refused_at_registration(parameters, message):
    assert message in refused(saying(parameters)[0])


def test_script_named_or_annotated_as_text_gets_text():
    made, kept = saying("sample, actual_output: str", "script")
    script = catalog.resolve(made).script(Sample("s", {}), Output("the text"))
    with pytest.raises(StopIteration) as stop:
        next(script)
    assert (stop.value.value, kept) == (1.0, ["the text"])
    with pytest.raises(StopIteration) as stop:
        next(catalog.resolve(made).script(Sample("s", {}), Output("\ud800")))
    assert stop.value.value.cause == "bad_output"
    assert "`script` of metric `saying`" in refused(saying("sample, prediction", "script")[0])


def test_metric_that_reads_text_takes_name_and_threshold(module):
    place = module(
        "scoring_of_text",
        "class Same:\n    name = 'same'\n"
        "    def score(self, sample, actual_output: str):\n        return actual_output == sample.expected_output\n",
    )
    report = dm.evaluate(
        [Sample("s", {}, "x")],
        outputs={"s": "x"},
        metrics=[catalog.resolve({"scoring_of_text:Same": {"name": "alike", "threshold": 1.0}}, search=place)],
    )
    assert (report.metrics["alike"].mean, report.metrics["alike"].pass_rate) == (1.0, 1.0)


def test_import_path_is_searched_in_suite_folder(module):
    place = module(
        "scoring_of_the_suite",
        "class Tone:\n    def __init__(self, level=1): self.name = f'tone-{level}'\n    def score(self, s, o): ...\n"
        "tone = Tone(9)\nnothing = 3\n",
    )
    before = list(sys.path)
    assert catalog.resolve("scoring_of_the_suite:Tone", search=place).name == "tone-1"
    assert catalog.resolve({"scoring_of_the_suite:Tone": {"level": 4}}, search=place).name == "tone-4"
    assert catalog.resolve("scoring_of_the_suite:Tone(level=5)", search=str(place)).name == "tone-5"
    assert catalog.resolve("scoring_of_the_suite:tone", search=place).name == "tone-9"
    assert sys.path == before
    assert "takes no option `level`" in refused({"scoring_of_the_suite:tone": {"level": 4}}, search=place)
    assert "is no metric" in refused("scoring_of_the_suite:nothing", search=place)
    assert "has no `tune`. Did you mean `tone`?" in refused("scoring_of_the_suite:tune", search=place)
    assert "TypeError" in refused({"scoring_of_the_suite:Tone": {"volume": 1}}, search=place)


def test_failing_module_is_configuration_error(module):
    assert "ModuleNotFoundError" in refused("module_nobody_wrote:Tone")
    assert "ZeroDivisionError" in refused("fails_at_once:x", search=module("fails_at_once", "1 / 0\n"))
    assert "SyntaxError" in refused("fails_to_parse:x", search=module("fails_to_parse", "def\n"))
    assert "No module" in refused("nowhere.at.all:Tone", search="/nonexistent")


def test_error_of_custom_metric_constructor_is_shown(plugins):
    plugins(tone=f"{__name__}:Tone")
    sys.modules.setdefault(__name__, sys.modules[Tone.__module__])
    assert refused({"tone": {"level": -1}}) == "`level` of tone is not negative."


def test_plugin_metric_is_found_by_entry_point(plugins, module, monkeypatch):
    place = module("plug_in_of_a_test", "class Tone:\n    name = 'tone'\n    def score(self, s, o): ...\n")
    monkeypatch.syspath_prepend(place)
    plugins(tone_of_voice="plug_in_of_a_test:Tone")
    assert catalog.resolve("tone-of-voice").name == "tone"
    assert "Did you mean `tone-of-voice`?" in refused("tone-of-voise")
    plugins(tone_of_voice="plug_in_nobody_wrote:Tone")
    assert "plug-in `tone-of-voice`" in refused("tone-of-voice")


def test_plugin_with_built_in_name_is_error(plugins):
    plugins(rouge_l="a:B", mrr="a:C")
    message = refused("tone")
    assert "`a:B` calls its metric `rouge-l`, which is taken" in message
    assert "`a:C` calls its metric `mrr`, which is taken" in message


def test_two_different_plugins_of_one_name_are_error(monkeypatch):
    def install(*values):
        points = [EntryPoint("tone", value, catalog.GROUP) for value in values]
        monkeypatch.setattr("importlib.metadata.entry_points", lambda group: points)
        catalog._plugins.cache_clear()

    install("a:B", "c:D")
    assert "`a:B` and `c:D` both call their metric `tone`" in refused("tone")
    install("a:B", "a:B")
    assert catalog.resolve("exact-match").name == "exact-match"
    catalog._plugins.cache_clear()


def test_all_metric_issues_of_suite_are_listed_at_once():
    with pytest.raises(ConfigurationError) as caught:
        catalog.resolve_all(["rogue-l", "rouge-l", {"rouge-l": {"threshold": 0.9}}, "exact-match@3", "json-valid"])
    assert [fault.message for fault in caught.value.issues] == [
        "No metric is called `rogue-l`. Did you mean `rouge-l`?",
        "`exact-match` takes no `@k`.",
        "Two metrics are called `rouge-l`. Give one of them another `name`.",
    ]


def test_metrics_keep_order_of_suite():
    made = catalog.resolve_all(["rouge-l", decorated, {"rouge-l": {"name": "other"}}, "ndcg@3", "ndcg@5"])
    assert [each.name for each in made] == ["rouge-l", "decorated", "other", "ndcg@3", "ndcg@5"]
    for nothing in ([], ()):
        with pytest.raises(ConfigurationError, match="There are no metrics"):
            catalog.resolve_all(nothing)
    for wrong in ("rouge-l", {"rouge-l": None}, None):
        with pytest.raises(ConfigurationError, match="are a list"):
            catalog.resolve_all(wrong)


def test_built_in_and_custom_metrics_have_spec_identity_family_and_quotes():
    ours = catalog.parse_metric("tool-called(tools=a)")
    assert catalog.card(ours)[:5] == (
        "tool-called",
        'tool-called(tools=["a"])',
        'tool-called(tools=["a"]) v1',
        "trajectory",
        frozenset({"missing"}),
    )
    assert catalog.identity(catalog.parse_metric("rouge-l")) == "rouge-l v1"
    assert catalog.card(decorated)[:5] == (
        "decorated",
        f"{__name__}:decorated",
        f"{__name__}:decorated v3",
        "custom",
        frozenset({"said"}),
    )
    assert catalog.card(Tone())[:5] == ("tone", f"{__name__}:Tone", f"{__name__}:Tone v1", "custom", None)


def test_catalog_describes_every_metric():
    every = {entry.name: entry for entry in catalog.entries()}
    assert list(every) == [*PLACES, *PRESETS]
    for entry in every.values():
        assert entry.summary.endswith(".")
        assert entry.doc.startswith(entry.summary)
        assert len(entry.doc) > len(entry.summary)
        assert {"name", "threshold"} <= {option.name for option in entry.options}
    gated = every["approval-gated"]
    assert (gated.family, gated.core, gated.reads, gated.reads_expected) == (
        "trajectory",
        False,
        ("trajectory",),
        False,
    )
    assert ("threshold", 1.0) in [(option.name, option.default) for option in gated.options]
    assert ("only_if_called", "true or false", False) in gated.options


def test_one_metric_is_described_by_any_of_its_names():
    assert catalog.describe("ndcg@10") == catalog.describe("retrieval-ndcg-at-k") == catalog.describe("ndcg")
    assert catalog.describe("ndcg").short == "ndcg"
    with pytest.raises(ConfigurationError, match="Did you mean `rouge-l`"):
        catalog.describe("rogue-l")


def test_importing_catalog_loads_no_metric_module():
    code = (
        "import sys, deemster.judges.metric_catalog\n"
        "heavy = {'numpy', 'scipy', 'rapidfuzz', 're2', 'jsonschema_rs', 'sacrebleu', 'pyarrow', 'yaml'}\n"
        "ours = {m for m in sys.modules if m.startswith('deemster.metrics.')}\n"
        "print(sorted(heavy & set(sys.modules)), sorted(ours))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    ours = ["builtin_metric", "import_user_code", "metric_signature", "metric_spec", "option_checks"]
    assert done.stdout == f"[] {[f'deemster.metrics.{name}' for name in ours]}\n"


class Plain:
    name = "plain"

    def score(self, sample, output):
        return dm.MetricScore(0.6)


@dm.metric("brief")
def brief(actual):
    return 0.6


@pytest.mark.parametrize("path", [f"{__name__}:Plain", f"{__name__}:brief"])
def test_every_metric_takes_a_name_and_a_threshold(path, monkeypatch):
    monkeypatch.setitem(sys.modules, __name__, sys.modules.get(__name__) or importlib.import_module(__name__))
    metric = catalog.resolve({path: {"name": "strict", "threshold": 0.9}})
    assert metric.name == "strict"
    assert catalog.spec(metric) == f"{path}(name=strict,threshold=0.9)"
    report = dm.evaluate([{"id": "a", "input": {}, "expected_output": None}], outputs={"a": "x"}, metrics=[metric])
    assert (report.metrics["strict"].threshold, report.metrics["strict"].n_passed) == (0.9, 0)


@pytest.mark.parametrize(
    "options", [{"name": " "}, {"name": 3}, {"threshold": 2}, {"threshold": "x"}, {"treshold": 0.5}]
)
def test_unknown_option_is_error_for_custom_metric(options):
    with pytest.raises(ConfigurationError):
        catalog.resolve({f"{__name__}:brief": options})
