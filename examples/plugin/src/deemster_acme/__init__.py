"""A plug-in for deemster: a metric, a target and a model client."""
