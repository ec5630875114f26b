"""Plain functions as metrics."""

import functools
from decimal import Decimal
from fractions import Fraction

import numpy as np
import pytest

from deemster.errors import ConfigurationError
from deemster.judges import metric_catalog as catalog
from deemster.metrics.function_metric import mark_from, metric
from deemster.records import FrozenDict, Metric, MetricScore, Output, Sample, Trajectory, Unscored


@metric("jaccard-words")
def jaccard_words(expected: str, actual: str) -> float:
    """Share of common words."""
    a, b = set(expected.casefold().split()), set(actual.casefold().split())
    return len(a & b) / len(a | b) if a | b else 1.0


def test_plain_function_is_a_metric():
    assert isinstance(jaccard_words, Metric)
    mark = jaccard_words.score(Sample("s", {}, "a b"), Output("b c"))
    assert (mark.score, mark.threshold, mark.higher_is_better, mark.details) == (1 / 3, 0.5, True, {})


def test_decorated_function_can_be_called():
    assert jaccard_words("a b", "b c") == 1 / 3
    assert jaccard_words.__wrapped__("a", "a") == 1.0
    assert (jaccard_words.__name__, jaccard_words.__doc__) == ("jaccard_words", "Share of common words.")


def test_arguments_are_bound_by_name():
    seen = {}

    @metric("all", threshold=0.9, higher_is_better=False, quotes=["q"], version="7")
    def everything(output, sample, /, trajectory, metadata, *, input, actual, expected):  # noqa: A002 - the name that is bound
        seen.update(locals())
        return 0.25

    sample = Sample("s", {"q": 1}, ["any"], {"k": 2})
    output = Output("text", trajectory=Trajectory())
    mark = everything.score(sample, output)
    assert {
        key: seen[key] for key in ("output", "sample", "trajectory", "metadata", "input", "actual", "expected")
    } == {
        "output": output,
        "sample": sample,
        "trajectory": output.trajectory,
        "metadata": {"k": 2},
        "input": {"q": 1},
        "actual": "text",
        "expected": ["any"],
    }
    assert (mark.threshold, mark.higher_is_better, mark.success) == (0.9, False, True)
    assert (everything.quotes, everything.version) == (frozenset({"q"}), "7")


def test_misspelt_parameter_is_refused_at_decoration():
    with pytest.raises(ConfigurationError, match=r"`exepcted`.*Did you mean `expected`.*Allowed: `expected`, `actual`"):
        metric("m")(lambda exepcted: 1)


@pytest.mark.parametrize("name", ["actual_output", "output_text", "text"])
def test_hint_for_name_of_text_is_actual(name):
    with pytest.raises(ConfigurationError, match=rf"`{name}`.*Did you mean `actual`\?.*`actual` is the output's text"):
        metric("m")(eval(f"lambda {name}: 1"))


def test_output_annotated_as_text_is_text():
    @metric("m")
    def plain(output: str) -> float:
        return float(output == "x")

    @metric("m")
    def named(*, output: "str | None", sample) -> float:
        return float(output == "x" and sample.id == "s")

    @metric("m")
    def whole(output: Output) -> float:
        return float(output == Output("x"))

    for each in (plain, named, whole):
        assert each.score(Sample("s", {}), Output("x")).score == 1.0
    assert plain.score(Sample("s", {}), Output("\ud800")).cause == "bad_output"


@pytest.mark.parametrize(
    "function", [lambda *args: 1, lambda **options: 1, lambda actual, other=3: 1, int, "text", None]
)
def test_unbindable_parameter_is_error_at_decoration(function):
    with pytest.raises(ConfigurationError):
        metric("m")(function)


def test_async_functions_are_refused():
    async def slow(actual):
        return 1

    class Slow:
        async def __call__(self, actual):
            return 1

    for function in (slow, Slow()):
        with pytest.raises(ConfigurationError, match="async"):
            metric("m")(function)


@pytest.mark.parametrize("name", ["", " ", None, jaccard_words.__wrapped__])
def test_empty_or_invalid_name_is_error(name):
    with pytest.raises(ConfigurationError, match="name"):
        metric(name)


@pytest.mark.parametrize("threshold", [-0.1, 1.1, "1", True, float("nan")])
def test_threshold_lies_between_0_and_1(threshold):
    with pytest.raises(ConfigurationError, match="threshold"):
        metric("m", threshold=threshold)


def test_absent_argument_is_unscored_without_call():
    def fail(expected, trajectory, actual):
        raise AssertionError

    whole = metric("m")(fail)
    output = Output("x", trajectory=Trajectory())
    assert whole.score(Sample("s", {}), output).cause == "no_expected"
    assert whole.score(Sample("s", {}, "a"), Output("x")).cause == "no_trajectory"
    assert whole.score(Sample("s", {}, "a"), Output("\ud800", trajectory=Trajectory())).cause == "bad_output"
    assert metric("m")(lambda output: 1).score(Sample("s", {}), Output("\ud800")).score == 1.0


def test_exception_of_function_is_raised():
    with pytest.raises(ZeroDivisionError):
        metric("m")(lambda actual: 1 / 0).score(Sample("s", {}), Output("x"))


@pytest.mark.parametrize(
    ("value", "score"),
    [
        (1, 1.0),
        (0.25, 0.25),
        (True, 1.0),
        (False, 0.0),
        (Decimal("0.5"), 0.5),
        (Fraction(1, 4), 0.25),
        (np.float64(0.5), 0.5),
        (np.float32(0.5), 0.5),
        (np.bool_(True), 1.0),
        (np.array(0.5), 0.5),
    ],
)
def test_numbers_and_booleans_become_scores(value, score):
    mark = mark_from(value, threshold=0.7, higher_is_better=False)
    assert mark == MetricScore(score, {}, None, 0.7, False)


def test_returned_marks_are_unchanged():
    for mark in (MetricScore(0.5, {"a": 1}, threshold=0.7), Unscored("too_large", "x")):
        assert mark_from(mark, threshold=0.9) is mark


def test_mark_without_pass_mark_or_direction_of_its_own_gets_those_of_its_metric():
    mark = mark_from(MetricScore(0.5), threshold=0.9, higher_is_better=False)
    assert (mark.threshold, mark.higher_is_better, mark.success) == (0.9, False, True)
    assert mark_from(MetricScore(0.5, higher_is_better=False)).higher_is_better is False


@pytest.mark.parametrize(
    "mark",
    [
        MetricScore(0.5, threshold="high"),
        MetricScore(0.5, threshold=2),
        MetricScore(0.5, threshold=float("nan")),
        MetricScore(0.5, threshold=True),
        MetricScore(0.5, higher_is_better="no"),
        MetricScore(0.5, rubric_score=float("nan")),
        MetricScore(0.5, rubric_score="B+"),
        MetricScore(0.5, rubric_score=10**400),
        MetricScore(0.5, [1]),
        MetricScore(0.5, FrozenDict(a=float("nan"))),
        MetricScore(0.5, FrozenDict(a=FrozenDict(b=float("inf")))),
        MetricScore(0.5, FrozenDict(a={1, 2})),
        MetricScore(0.5, {"a": "\ud800"}),
        MetricScore(0.5, {"a": 10**5000}),
    ],
    ids=lambda mark: f"{mark.threshold} {mark.higher_is_better}",
)
def test_unserializable_mark_is_error(mark):
    with pytest.raises(ValueError, match="of a score"):
        mark_from(mark)


@pytest.mark.parametrize("threshold", ["high", 2, None, True])
def test_invalid_threshold_with_number_is_error(threshold):
    with pytest.raises(ValueError, match="threshold"):
        mark_from(0.5, threshold=threshold)


def test_attributes_of_the_function_do_not_become_those_of_the_metric():
    def plain(actual):
        return 1

    plain.name = "other"
    assert metric("mine")(plain).name == "mine"
    again = metric("outer")(jaccard_words)
    assert (again.name, again.score(Sample("s", {}, "a b"), Output("b c")).score) == ("outer", 1 / 3)


def test_callable_object_is_described_by_the_name_of_its_metric():
    half = metric("half")(functools.partial(lambda actual, expected: 0.5, expected="x"))
    assert catalog.card(half)[:3] == ("half", "functools:half", "functools:half v1")


def test_function_without_signature_is_error():
    with pytest.raises(ConfigurationError, match="does not tell its parameters"):
        metric("m")(min)


@pytest.mark.parametrize(
    "value",
    [
        None,
        "x",
        "0.5",
        b"0.5",
        1.5,
        -0.1,
        float("nan"),
        float("inf"),
        10**400,
        Decimal("sNaN"),
        [0.5],
        {},
        1j,
        object(),
        np.array([0.5]),
        np.float64("nan"),
    ],
)
def test_invalid_return_value_is_error(value):
    with pytest.raises(ValueError, match="A metric returns a number between 0 and 1, a boolean or a score, not"):
        mark_from(value)
