"""Compares and ranks runs, and shows one run beside another: page, comment, JUnit, brief."""

from deemster import load_lazily

load_lazily(__name__)
