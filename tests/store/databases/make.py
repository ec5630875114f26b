"""Writes the stored databases of the current schema. Run it when a schema is released, never for an old one.

python tests/store/databases/make.py v7.db          # an SQLite file
python tests/store/databases/make.py v7.sql URL     # the rows of a PostgreSQL database, as statements
"""

from __future__ import annotations

import sys
from pathlib import Path

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE.parent))
TABLES = (
    *("migrations", "runs", "contents", "samples", "outputs", "scorings", "marks", "calls", "prompts"),
    *("baselines", "columns", "labels"),
)


def fill(store):
    """Runs of each kind, with everything that a schema holds."""
    from make_runs import BASELINE, LABEL, MARK, begun, card, execution, graded_item, sample, written

    from deemster.records import MetricScore, Output, TargetFailure, Unscored, Usage
    from deemster.store.graded_items import GRADING_CARD
    from deemster.store.run_facts import RunEnd

    name = written(store, 0, count=3, cards=[card("a"), card("b")], suite="support-bot", seed=2**70)
    store.settle(name, 0, [execution(1, marks=[MetricScore(1.0), MARK])])
    number = store.open_scoring(name, [card("b", "b/2")], identity={"n": 1}, started_at="2026-01-02T00:00:00.000Z")
    with store.writer(name, scoring=number, outputs=False) as writer:
        writer.add([execution(position, marks=[MetricScore(0.25, {"k": "v"})]) for position in range(3)])
    store.finish_scoring(name, number, RunEnd("complete", finished_at="2026-01-02", duration_s=1.0))
    store.promote(name, BASELINE)
    store.write_columns(name, [b"columns"])
    store.put_label(name, LABEL)
    name = begun(store, 1, count=2, repetitions=2, experiment="trial")
    with store.writer(name) as writer:
        writer.add([execution(0, answer=TargetFailure("refused"), marks=[Unscored("target_failed", "refused")])])
        output = Output("é", retrieved=["d1"], usage=Usage(prompt_tokens=3, cost_usd=0.25), model="m")
        writer.add([execution(1, 1, answer=output)], at="2026-01-01T00:00:05.000Z")
        writer.add_calls([(7, b'{"id":7,"key":"AAEC","counted":[12,"0.5",0,"0"]}')])
        writer.add_prompts(0, 0, 0, b'[{"role":"judge","messages":[["user","Is it?"]],"reply":"No."}]')
    store.finish(name, RunEnd("incomplete", reason="stopped", finished_at="2026-01-01", duration_s=0.5))
    name = begun(store, 2, count=2, kind="grading", cards=[GRADING_CARD])
    with store.writer(name) as writer:
        writer.add([graded_item(0, votes=[])])
    name = begun(store, 3, count=0, kind="recording", cards=[])
    with store.writer(name) as writer:
        writer.add_samples([sample(0)])
        writer.add([execution(0, marks=[])])


def literal(value):
    """A value as PostgreSQL reads it."""
    if value is None:
        return "NULL"
    if isinstance(value, bytes):
        return f"'\\x{value.hex()}'::bytea"
    if isinstance(value, str):
        return "'" + value.replace("'", "''") + "'"
    return repr(value)


def main():
    """Make one database."""
    from deemster.store import open_store
    from deemster.store.open_and_migrate import _FOLDER, statements

    path = HERE / sys.argv[1]
    path.unlink(missing_ok=True)
    with open_store(sys.argv[2] if path.suffix == ".sql" else path) as store:
        fill(store)
    if path.suffix != ".sql":
        return
    lines = [
        "CREATE SCHEMA deemster",
        "SET search_path TO deemster",
        "CREATE TABLE migrations (number BIGINT PRIMARY KEY)",
    ]
    with open_store(sys.argv[2]) as store, store.pool.read_transaction() as rows:
        for file in sorted(_FOLDER.glob("*.sql")):
            lines += statements(file, store.pool.database)
        for table in TABLES:
            for row in rows.read(f"SELECT * FROM {table}"):
                lines.append(f"INSERT INTO {table} VALUES ({', '.join(map(literal, row))})")
    for table in ("runs", "contents"):
        sequence = f"pg_get_serial_sequence('{table}', 'number')"
        lines.append(f"SELECT setval({sequence}, (SELECT max(number) FROM {table}))")
    path.write_text(";\n".join(lines) + ";\n", encoding="utf-8")


if __name__ == "__main__":
    main()
