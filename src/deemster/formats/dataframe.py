"""Rows as a pandas table, where pandas is installed."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

from deemster.errors import MissingExtraError

if TYPE_CHECKING:
    import pandas as pd


def dataframe(rows: Iterable[Mapping[str, Any]], *, of: str, types: Mapping[str, str] | None = None) -> pd.DataFrame:
    """A pandas table with a line for each row.

    Args:
        rows: The rows: columns and their values.
        of: What becomes a table, for the message where pandas is missing: "A report".
        types: The columns and their pandas types; those of the rows, as pandas finds them, unless given.

    Raises:
        MissingExtraError: pandas is not installed.
    """
    try:
        import pandas as pd  # noqa: PLC0415 - an optional extra, loaded where it is used
    except ImportError:
        raise MissingExtraError(f"{of} as a table of pandas", extra="dataframe") from None
    held = list(rows)
    if types is None:
        return pd.DataFrame(held)
    return pd.DataFrame(
        {column: pd.Series([row.get(column) for row in held], dtype=kind) for column, kind in types.items()}
    )
