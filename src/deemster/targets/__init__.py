"""The system under test: a Python function, an HTTP endpoint, a command, saved outputs."""

from deemster import lazy_names

_FILES = {
    "deemster.targets.command_target": ("CommandTarget",),
    "deemster.targets.http_target": ("HttpTarget",),
    "deemster.targets.python_target": ("PythonTarget",),
    "deemster.targets.saved_outputs": ("SavedOutputs",),
}

__getattr__, __all__ = lazy_names(__name__, _FILES)
