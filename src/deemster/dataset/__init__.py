"""Golden datasets: reading, checking, fingerprints, writing."""

from deemster.dataset.golden import Dataset
from deemster.dataset.hashes import row_hash

__all__ = ["Dataset", "row_hash"]
