from deemster.targets.command_target import CommandTarget as CommandTarget
from deemster.targets.http_target import HttpTarget as HttpTarget
from deemster.targets.python_target import PythonTarget as PythonTarget
from deemster.targets.saved_outputs import SavedOutputs as SavedOutputs
