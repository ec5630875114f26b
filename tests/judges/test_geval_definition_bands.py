"""Rubrics of whole numbers, and which are refused."""

import pytest

from deemster.errors import ConfigurationError
from deemster.judges.geval_definition import HIGHEST, TENTHS, Band, format_bands, parse_bands


def band(low, high, outcome="o"):
    return {"range": [low, high], "outcome": outcome}


def test_bands_are_put_in_order_and_their_outcomes_trimmed():
    assert parse_bands([band(4, 5, " good "), band(1, 3, "bad")], metric="m") == (
        Band((1, 3), "bad"),
        Band((4, 5), "good"),
    )


def test_parsed_bands_parse_again_unchanged():
    found = parse_bands([band(0, 1), band(2, 2)], metric="m")
    assert parse_bands(found, metric="m") == found


def test_default_rubric_covers_zero_to_ten_without_a_gap():
    assert parse_bands(TENTHS, metric="m") == TENTHS
    assert (TENTHS[0].range[0], TENTHS[-1].range[1]) == (0, 10)


def test_judge_reads_one_band_on_a_line():
    assert format_bands([Band((0, 0), "none"), Band((1, 9), "some")]) == "- 0: none\n- 1 to 9: some"


@pytest.mark.parametrize(
    ("rubric", "message"),
    [
        ([band(1, 3), band(3, 5)], "Two bands of `rubric` of m overlap: 1 to 3 and 3 to 5 both hold 3."),
        ([band(1, 5), band(2, 3)], "Two bands of `rubric` of m overlap: 1 to 5 and 2 to 3 both hold 2."),
        ([band(1, 2), band(5, 5)], "`rubric` of m has no band for 3."),
        ([band(0, 1), band(3, 3)], "`rubric` of m has no band for 2."),
        ([band(4, 4)], "`rubric` of m has the one score 4; two are the least."),
        ([band(3, 1)], "has the lower one first, not 3 to 1"),
        ([band(-1, 1)], "m.rubric[0].range[0] must be a whole number from 0 to 1000, not -1"),
        ([band(0, HIGHEST + 1)], "m.rubric[0].range[1] must be a whole number from 0 to 1000, not 1001"),
        ([band(0, 1.0)], "m.rubric[0].range[1]: expected `int`, got `float`"),
        ([band(False, True)], "m.rubric[0].range[0] must be a whole number from 0 to 1000, not a boolean"),
        ([{"range": [1], "outcome": "o"}], "m.rubric[0].range has 1 entry; it needs at least 2"),
        ([{"range": "1-3", "outcome": "o"}], "m.rubric[0].range must be two whole numbers, not text"),
        ([{"outcome": "o"}], "m.rubric[0]: `range` is missing"),
        ([band(0, 1, " ")], "m.rubric[0].outcome is blank"),
        ([band(0, 1, None)], "m.rubric[0].outcome must be text, not null"),
        ([band(0, 1, "a\ud800")], "m.rubric[0].outcome holds a lone surrogate, which is no character"),
        ([{**band(0, 1), "outcom": "x"}], "m.rubric[0]: `outcom` is no key of a band. Did you mean `outcome`?"),
        (["0 to 1"], "m.rubric[0] must be a map with `range` and `outcome`, not text"),
        ([], "m.rubric is empty"),
        ("0-10", "m.rubric must be a list of bands such as `{range: [1, 3], outcome: what earns it}`, not text"),
        ({"range": [0, 1]}, "m.rubric must be a list of bands"),
    ],
)
def test_unusable_rubric_is_error_with_reason(rubric, message):
    with pytest.raises(ConfigurationError) as error:
        parse_bands(rubric, metric="m")
    assert message in str(error.value)
