"""Runs the parts of an evaluation on the workers of a Ray cluster."""
