"""Rubrics of whole numbers, and which are refused."""

import pytest

from deemster.errors import ConfigurationError
from deemster.judges._score_bands import HIGHEST, TENTHS, Band, format_bands, parse_bands


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


def test_the_default_rubric_covers_zero_to_ten_without_a_gap():
    assert parse_bands(TENTHS, metric="m") == TENTHS
    assert (TENTHS[0].range[0], TENTHS[-1].range[1]) == (0, 10)


def test_a_judge_reads_one_band_on_a_line():
    assert format_bands([Band((0, 0), "none"), Band((1, 9), "some")]) == "- 0: none\n- 1 to 9: some"


@pytest.mark.parametrize(
    ("rubric", "message"),
    [
        ([band(1, 3), band(3, 5)], "Two bands of `rubric` of m overlap: 1 to 3 and 3 to 5 both hold 3."),
        ([band(1, 5), band(2, 3)], "Two bands of `rubric` of m overlap: 1 to 5 and 2 to 3 both hold 2."),
        ([band(1, 2), band(5, 5)], "`rubric` of m has no band for 3."),
        ([band(0, 1), band(3, 3)], "`rubric` of m has no band for 2."),
        ([band(4, 4)], "`rubric` of m has the one score 4; two are the least."),
        ([band(3, 1)], "the lower one first"),
        ([band(-1, 1)], "from 0 to 1000"),
        ([band(0, HIGHEST + 1)], "from 0 to 1000"),
        ([band(0, 1.0)], "is two whole numbers, not [0, 1.0]"),
        ([band(False, True)], "is two whole numbers"),
        ([{"range": [1], "outcome": "o"}], "is two whole numbers"),
        ([{"range": "1-3", "outcome": "o"}], "is two whole numbers"),
        ([{"outcome": "o"}], "is two whole numbers, not None"),
        ([band(0, 1, " ")], "`outcome` of `rubric[0]` of m is text that is not blank"),
        ([band(0, 1, None)], "`outcome` of `rubric[0]` of m is text that is not blank, not None"),
        ([band(0, 1, "a\ud800")], "`outcome` of `rubric[0]` of m is not valid Unicode at character 1"),
        ([{**band(0, 1), "outcom": "x"}], "has no key 'outcom'. Did you mean `outcome`?"),
        (["0 to 1"], "`rubric[0]` of m is a map"),
        ([], "is a list of bands"),
        ("0-10", "is a list of bands"),
        ({"range": [0, 1]}, "is a list of bands"),
    ],
)
def test_unusable_rubric_is_error_with_reason(rubric, message):
    with pytest.raises(ConfigurationError) as error:
        parse_bands(rubric, metric="m")
    assert message in str(error.value)
