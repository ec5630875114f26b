"""Golden datasets, rubric datasets and votes: reading, checking, fingerprints, splits, writing."""

from deemster import lazy_names

__getattr__ = lazy_names(__name__)
