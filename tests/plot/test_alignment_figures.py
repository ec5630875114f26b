import pytest

import deemster as dm
from tests.alignment import make_results


def test_confusion_matrix_has_the_counts_of_the_criterion():
    result = make_results.full_result()
    part = next(each for each in result.per_criterion if each.name == "facts")
    axes = dm.plot.confusion_matrix(result, "facts").axes[0]
    assert [text.get_text() for text in axes.texts] == [
        f"{count:,}" for row in part.confusion_matrix.matrix for count in row
    ]


def test_unknown_criterion_gets_the_nearest_name():
    with pytest.raises(dm.InputError, match="facts"):
        dm.plot.confusion_matrix(make_results.full_result(), "fatcs")


def test_reliability_curve_has_a_line_for_each_judge_beside_the_diagonal():
    result = make_results.full_result()
    axes = dm.plot.reliability_curve(result).axes[0]
    assert len(axes.get_legend().get_texts()) == len(result.calibration)


def test_result_without_probabilities_has_no_curve():
    with pytest.raises(dm.InputError, match="no judge states a probability"):
        dm.plot.reliability_curve(make_results.empty_result())


def test_unknown_judge_has_no_curve():
    with pytest.raises(dm.InputError, match="No judge 'nobody'"):
        dm.plot.reliability_curve(make_results.full_result(), judge="nobody")
