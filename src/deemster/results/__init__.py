"""Summaries of runs and gradings: statistics, cohorts, aggregators, usage and cost, and the gate."""

from deemster import load_lazily

load_lazily(__name__)
