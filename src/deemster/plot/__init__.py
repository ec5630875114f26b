"""Plots for notebooks, as figures of matplotlib: reports, comparisons and alignments, computed or read from a file."""

from deemster import lazy_names

_FILES = {
    "deemster.plot.alignment_figures": ("confusion_matrix", "reliability_curve"),
    "deemster.plot.interval_figure": ("intervals",),
    "deemster.plot.report_figures": ("cohort_heatmap", "histograms", "paired_differences"),
}

__getattr__, __all__ = lazy_names(__name__, _FILES)
