from deemster.testing.model_server import ModelServer as ModelServer
from deemster.testing.model_server import ReceivedRequest as ReceivedRequest
from deemster.testing.obedient_model import ObedientModel as ObedientModel
from deemster.testing.server_faults import FAULTS as FAULTS
from deemster.testing.server_replies import ChatMessages as ChatMessages
