from deemster.comparison.comparison import Comparison as Comparison
from deemster.comparison.privacy_levels import LEVELS as LEVELS
from deemster.comparison.privacy_levels import PUBLISH_SAFE as PUBLISH_SAFE
from deemster.comparison.privacy_levels import redact_report as redact_report
from deemster.comparison.report_loader import load_comparison as load_comparison
from deemster.comparison.report_loader import load_report as load_report
