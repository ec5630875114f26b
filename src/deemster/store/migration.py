"""Bringing a store to the schema of this version."""

from __future__ import annotations

from pathlib import Path

from deemster.store.dialect import Dialect, Rows, failure

_FOLDER = Path(__file__).parent / "migrations"


def migrate(dialect: Dialect, rows: Rows) -> None:
    """Apply the migrations that a database has not seen, all in one transaction.

    Args:
        dialect: The database.
        rows: A connection to it.

    Raises:
        StoreError: The database comes from a newer version, belongs to something else, or refuses.
    """
    files = sorted(_FOLDER.glob("[0-9]*.sql"))
    if _missing(dialect, rows, len(files)):
        with rows.transaction():
            dialect.lock(rows)
            # Another process may have been faster.
            missing = _missing(dialect, rows, len(files))
            for file in files[len(files) - missing :]:
                for statement in statements(file, dialect):
                    rows.write(statement)
            if missing:
                dialect.stamp(rows, len(files))


def statements(file: Path, dialect: Dialect) -> list[str]:
    """The statements of a migration, in the words of a dialect."""
    text = file.read_text(encoding="utf-8")
    for word, meaning in dialect.words.items():
        text = text.replace(f"{{{{{word}}}}}", meaning)
    lines = [line for line in text.splitlines() if not line.startswith("--")]
    return [statement.strip() for statement in "\n".join(lines).split(";\n") if statement.strip(";\n ")]


def _missing(dialect: Dialect, rows: Rows, known: int) -> int:
    version = dialect.version(rows)
    if version < 0:
        raise failure(dialect.where, "The store is damaged: its schema has no number.")
    if version > known:
        message = f"This store has schema {version}; this version of deemster reads up to {known}. Update deemster."
        raise failure(dialect.where, message)
    return known - version
