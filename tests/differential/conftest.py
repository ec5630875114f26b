"""The peer that several files compare with."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.differential.autorubric.peer import Peer, autorubric


@pytest.fixture(scope="session")
def peer() -> Iterator[Peer]:
    """autorubric, which takes ten seconds to start: the tests that ask it are one group and share one process."""
    with autorubric() as asked:
        yield asked
