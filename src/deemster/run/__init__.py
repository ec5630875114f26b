"""Suites, the catalog of metrics, and the engine that plays them."""
