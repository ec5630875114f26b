from deemster.comparison.comparison import Comparison as Comparison
from deemster.comparison.report_loader import load_comparison as load_comparison
from deemster.comparison.report_loader import load_report as load_report
from deemster.comparison.without_text import report_without_text as report_without_text
