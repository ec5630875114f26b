"""Arithmetic on arrays and labels. Knows no sample and no judge."""

from deemster import load_lazily

load_lazily(__name__)
