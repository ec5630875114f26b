"""The store of runs, and the spool for the executions of a run that is not stored."""

from deemster.store._row_encoding import decode_execution, encode_execution
from deemster.store.batched_writer import Writer
from deemster.store.lease import Lease
from deemster.store.open_and_migrate import open_store
from deemster.store.run_facts import BaselineFacts, BaselineRow, LabelFacts, LeaseOwner, RunFacts, RunRow, ScoringRow
from deemster.store.run_store import Store
from deemster.store.spool import Spool

__all__ = [
    "BaselineFacts",
    "BaselineRow",
    "LabelFacts",
    "Lease",
    "LeaseOwner",
    "RunFacts",
    "RunRow",
    "ScoringRow",
    "Spool",
    "Store",
    "Writer",
    "decode_execution",
    "encode_execution",
    "open_store",
]
