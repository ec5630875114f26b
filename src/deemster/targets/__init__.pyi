from deemster.targets._http_reply import ReplyPaths as ReplyPaths
from deemster.targets.chat_target import ChatTarget as ChatTarget
from deemster.targets.command_target import CommandTarget as CommandTarget
from deemster.targets.http_target import HttpLimits as HttpLimits
from deemster.targets.http_target import HttpTarget as HttpTarget
from deemster.targets.python_target import PythonTarget as PythonTarget
from deemster.targets.saved_outputs import SavedOutputs as SavedOutputs
