import pytest

import deemster as dm
from tests.report.comparisons import compared, helpdesk
from tests.report.runs import full_report, small_report


def test_histograms_have_the_counts_of_the_report():
    report = full_report()
    figure = dm.plot.histograms(report)
    drawn = {axes.get_title(): [bar.get_height() for bar in axes.patches] for axes in figure.axes}
    assert len(drawn) == len(report.metric_order)
    assert drawn["quoting (6 scored)"] == [bar.count for bar in report.histograms["quoting"]]


def test_heatmap_has_a_number_in_every_cell():
    report = full_report()
    axes = dm.plot.cohort_heatmap(report).axes[0]
    rates = [cohort.metrics[name].pass_rate for cohort in report.cohort_list for name in report.metric_order]
    assert [text.get_text() for text in axes.texts] == [f"{rate:.2f}" for rate in rates]


def test_differences_are_those_of_the_changed_samples_in_order():
    comparison = helpdesk()
    axes = dm.plot.paired_differences(comparison).axes[0]
    heights = [bar.get_height() for bar in axes.patches]
    assert heights == sorted(heights)
    assert len(heights) == 4
    assert axes.get_title() == "4 samples changed, 34 did not"


def test_equal_runs_have_nothing_to_draw():
    same = compared({"a": "right", "b": "wrong"}, {"a": "right", "b": "wrong"})
    with pytest.raises(dm.InputError, match="no sample that both runs scored has changed"):
        dm.plot.paired_differences(same)


@pytest.mark.parametrize("draw", [dm.plot.histograms, dm.plot.cohort_heatmap, dm.plot.paired_differences])
def test_another_thing_is_refused(draw):
    with pytest.raises(dm.InputError, match="This plot is drawn of a"):
        draw({"a": 1})


def test_report_read_from_a_file_is_drawn_alike(tmp_path):
    report = small_report("a", "b", tags=("t",))
    report.save(tmp_path / "r.json")
    drawn = [
        [text.get_text() for text in dm.plot.cohort_heatmap(each).axes[0].texts]
        for each in (report, dm.load_report(tmp_path / "r.json"))
    ]
    assert drawn[0] == drawn[1]
