"""Executes a plan: calls of the target, scripts of judges, the worker pool, progress and stop. Knows no store."""
