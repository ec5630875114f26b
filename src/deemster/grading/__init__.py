"""Grades submissions by a rubric, examines a rubric and improves it."""

from deemster import load_lazily

load_lazily(__name__)
