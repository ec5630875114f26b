"""Grades submissions by a rubric, examines a rubric and improves it."""

from deemster import lazy_names

__getattr__ = lazy_names(__name__)
