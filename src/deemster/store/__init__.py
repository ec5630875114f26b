"""The store of runs, and the spool for the executions of a run that is not stored."""

from deemster import load_lazily

load_lazily(__name__)
