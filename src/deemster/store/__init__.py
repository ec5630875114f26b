"""Where the facts of a run are kept."""

from deemster.store.spool import Spool

__all__ = ["Spool"]
