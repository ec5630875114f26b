from deemster.models.clock import FrozenClock as FrozenClock
from deemster.models.fake_models import FakeChat as FakeChat
from deemster.models.fake_models import FakeEmbedding as FakeEmbedding
from deemster.testing.golden_file import compare_with_golden as compare_with_golden
from deemster.testing.model_server import ModelServer as ModelServer
from deemster.testing.model_server import ReceivedRequest as ReceivedRequest
from deemster.testing.server_faults import FAULTS as FAULTS
from deemster.testing.server_replies import ChatMessages as ChatMessages
