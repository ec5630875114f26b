"""Golden datasets, rubric datasets and votes: reading, checking, fingerprints, splits, writing."""

from deemster import load_lazily

load_lazily(__name__)
