"""Where the facts of a run are kept: the store of runs, and the spool of one that is not stored."""

from deemster.store.facts import Owner, RunFacts, RunRow, SampleFacts, ScoringRow
from deemster.store.lease import Lease
from deemster.store.opening import open_store
from deemster.store.spool import Spool
from deemster.store.store import Store
from deemster.store.writer import Writer

__all__ = [
    "Lease",
    "Owner",
    "RunFacts",
    "RunRow",
    "SampleFacts",
    "ScoringRow",
    "Spool",
    "Store",
    "Writer",
    "open_store",
]
