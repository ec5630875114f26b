"""Gates: their rules, the baseline that they hold a run to, and the decision."""

from deemster import load_lazily

load_lazily(__name__)
