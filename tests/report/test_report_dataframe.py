import math

import pytest

import deemster as dm
from deemster.comparison import report_without_text
from deemster.errors import ReportError


@pytest.fixture
def report():
    return dm.evaluate(
        dm.Dataset([dm.Sample("a", {"q": 1}, "x", {"tags": ["t"]}), dm.Sample("b", {"q": 2}, "y")], name="d"),
        outputs={"a": ["x", "z"], "b": ["y", "y"]},
        metrics=["exact-match", "contains"],
        repetitions=2,
    )


def test_marks_are_one_row_each(report):
    table = report.to_dataframe()
    assert len(table) == report.totals.marks == 8
    row = table[(table.sample_id == "a") & (table.repetition == 1) & (table.metric == "exact-match")].iloc[0]
    assert (row.score, row.success, row.tags) == (0.0, False, ["t"])


def test_samples_are_one_row_each_with_a_column_for_each_metric(report):
    table = report.to_dataframe("samples")
    assert list(table["sample_id"]) == ["a", "b"]
    assert list(table["exact-match"]) == [0.5, 1.0]
    assert list(table["passed"]) == [1, 2]


def test_samples_have_their_input_unless_it_is_left_out(report):
    assert list(report.to_dataframe("samples")["input"]) == ["1", "2"]
    without = report_without_text(report, quotes=lambda _: None).to_dataframe("samples")
    assert list(without["input"]) == [None, None]


def test_unscored_marks_have_a_cause_and_no_score():
    dataset = dm.Dataset([dm.Sample("a", {}, None), dm.Sample("b", {}, "x")], name="d")
    with pytest.warns(UserWarning, match="no `expected_output`"):
        report = dm.evaluate(dataset, outputs={"a": "x", "b": "x"}, metrics=["exact-match"])
    row = report.to_dataframe().iloc[0]
    assert row.cause == "no_expected"
    assert math.isnan(row.score)


def test_unknown_form_is_refused_with_the_nearest_name(report):
    with pytest.raises(ReportError, match="Did you mean `samples`"):
        report.to_dataframe("sample")


@pytest.mark.parametrize("form", ["marks", "samples"])
def test_table_of_arrow_has_the_rows_of_the_data_frame(report, form):
    table = report.to_arrow(form)
    assert table.column_names == list(report.to_dataframe(form).columns)
    assert table.column("sample_id").to_pylist() == list(report.to_dataframe(form)["sample_id"])
    with pytest.raises(ReportError, match="marks"):
        report.to_arrow("mark")
