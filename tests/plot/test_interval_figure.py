import sys

import pytest

import deemster as dm
from tests.alignment import make_results
from tests.report.comparisons import helpdesk
from tests.report.runs import full_report, small_report


def dots(figure):
    return [line.get_xdata()[0] for line in figure.axes[0].lines if line.get_marker() == "o"]


def test_report_shows_the_pass_rate_of_each_metric():
    report = full_report()
    rates = [report.metrics[name].pass_rate for name in report.metric_order]
    figure = dm.plot.intervals(report)
    assert dots(figure) == [report.macro_f1, report.pass_rate, *rates]
    names = [text.get_text() for text in figure.axes[0].get_yticklabels()]
    assert names == ["macro-F1", "every metric passed", *report.metric_order]


def test_comparison_shows_the_changes_as_read_from_a_file_too(tmp_path):
    comparison = helpdesk()
    comparison.save(tmp_path / "c.json")
    expected = [comparison.macro_f1.difference, comparison.pass_rate.difference]
    for source in (comparison, dm.load_comparison(tmp_path / "c.json")):
        assert dots(dm.plot.intervals(source))[:2] == pytest.approx(expected)


def test_alignment_shows_the_kappa_of_each_criterion(tmp_path):
    result = make_results.full_result()
    result.to_file(tmp_path / "a.json")
    for source in (result, dm.MetricsResult.from_file(tmp_path / "a.json")):
        assert dots(dm.plot.intervals(source))[0] == result.mean_kappa


def test_axes_that_are_given_are_drawn_on():
    from matplotlib.figure import Figure

    figure = Figure()
    axes = figure.add_subplot()
    assert dm.plot.intervals(full_report(), ax=axes) is figure
    assert axes.lines


def test_text_from_data_is_no_formula():
    report = small_report(name="$x$")
    figure = dm.plot.histograms(report)
    assert figure._repr_png_().startswith(b"\x89PNG")


def test_notebook_shows_the_figure_as_a_picture():
    from IPython.core.formatters import DisplayFormatter

    data, _ = DisplayFormatter().format(dm.plot.intervals(full_report()))
    assert data["image/png"].startswith(b"\x89PNG")


def test_without_matplotlib_the_error_names_the_extra(monkeypatch):
    from deemster.plot import _notebook_figure

    _notebook_figure._figure_class.cache_clear()
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    with pytest.raises(dm.DeemsterError, match=r"deemster\[plot\]"):
        dm.plot.intervals(full_report())
    _notebook_figure._figure_class.cache_clear()


def test_another_thing_is_refused():
    with pytest.raises(
        dm.InputError, match="This plot is drawn of a report, a comparison or a result of alignment, not of"
    ):
        dm.plot.intervals("report.json")
