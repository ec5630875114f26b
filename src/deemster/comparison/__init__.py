"""Compares and ranks runs, and shows one run beside another: page, comment, JUnit, brief."""

from deemster import lazy_names

__getattr__ = lazy_names(__name__)
