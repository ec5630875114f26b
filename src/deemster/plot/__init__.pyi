from deemster.plot.alignment_figures import confusion_matrix as confusion_matrix
from deemster.plot.alignment_figures import reliability_curve as reliability_curve
from deemster.plot.interval_figure import intervals as intervals
from deemster.plot.report_figures import cohort_heatmap as cohort_heatmap
from deemster.plot.report_figures import histograms as histograms
from deemster.plot.report_figures import paired_differences as paired_differences
