"""Labels on an ordered scale."""

import pytest

from deemster.errors import ConfigurationError
from deemster.metrics.ordinal_distance import OrdinalDistance
from deemster.records import Output, Sample

URGENCY = ["low", "medium", "high", "urgent"]


def marked(expected, actual, *, metadata=None, **options):
    return OrdinalDistance(**options).score(Sample("s", {}, expected, metadata or {}), Output(actual))


@pytest.mark.parametrize(
    ("answer", "step", "linear"),
    [("high", 1.0, 1.0), ("urgent", 0.5, 2 / 3), ("medium", 0.5, 2 / 3), ("low", 0.0, 1 / 3)],
)
def test_credit_depends_on_levels_between_labels(answer, step, linear):
    assert marked("high", answer, scale=URGENCY).score == step
    assert marked("high", answer, scale=URGENCY, credit="linear").score == linear


def test_label_off_scale_scores_zero():
    mark = marked("high", "High", scale=URGENCY)
    assert (mark.score, mark.details) == (
        0.0,
        {"expected_index": 2, "actual_index": None, "distance": None, "on_scale": False, "levels": 4},
    )
    assert marked("high", " High\n", scale=URGENCY, normalize=True).score == 1.0


def test_details_have_positions_on_scale():
    assert marked("low", "urgent", scale=URGENCY).details == {
        "expected_index": 0,
        "actual_index": 3,
        "distance": 3,
        "on_scale": True,
        "levels": 4,
    }


def test_scale_of_sample_overrides_option():
    mark = marked("b", "a", metadata={"ordinal_scale": ["a", "b"]}, scale=URGENCY, credit="linear")
    assert (mark.score, mark.details["levels"]) == (0.0, 2)


@pytest.mark.parametrize("scale", [["a"], [], ["a", "a"], ["a", ""], ["a", " "], ["a", 1], "ab", {"a": 1}, 3])
def test_invalid_scale_stops_the_run(scale):
    with pytest.raises(ConfigurationError, match="`scale` of ordinal-distance"):
        OrdinalDistance(scale=scale)
    (issue,) = OrdinalDistance().check(Sample("s", {}, "a", {"ordinal_scale": scale}))
    assert not issue.warning
    assert "ordinal_scale" in issue.message
    assert marked("a", "a", metadata={"ordinal_scale": scale}).cause == "bad_sample"


def test_labels_equal_after_normalization_match():
    with pytest.raises(ConfigurationError, match="twice once normalized"):
        OrdinalDistance(scale=["Low", "low"], normalize=["casefold"])
    assert marked("low", "Low", scale=["Low", "low"]).score == 0.5


@pytest.mark.parametrize(("expected", "cause"), [("huge", "bad_sample"), (2, "bad_sample"), (None, "no_expected")])
def test_expected_label_off_scale_is_unscored_with_warning(expected, cause):
    assert marked(expected, "low", scale=URGENCY).cause == cause
    (issue,) = OrdinalDistance(scale=URGENCY).check(Sample("s", {}, expected))
    assert issue.warning


def test_no_scale_at_all_is_unscored():
    assert marked("low", "low").cause == "bad_sample"
    assert marked("low", "low", metadata={"ordinal_scale": None}).cause == "bad_sample"


@pytest.mark.parametrize(
    ("option", "message"),
    [
        ({"credit": "steps"}, "Did you mean `step`"),
        ({"credit": 1}, "one of `step`, `linear`"),
        ({"normalize": ["casefolds"]}, "Did you mean `casefold`"),
        ({"threshold": 2}, "between 0 and 1"),
    ],
)
def test_option_out_of_range_is_refused(option, message):
    with pytest.raises(ConfigurationError, match=message):
        OrdinalDistance(**option)


def test_output_with_lone_surrogate_is_unscored():
    assert marked("low", "\ud800", scale=URGENCY).cause == "bad_output"
