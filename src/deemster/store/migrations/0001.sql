-- Bodies are JSON as bytes, each with a check sum over its key and itself, so that damage is seen where it is read.

CREATE TABLE runs (
    number {{serial}},
    id TEXT NOT NULL UNIQUE,
    kind TEXT NOT NULL,
    suite TEXT,
    dataset TEXT NOT NULL,
    fingerprint TEXT NOT NULL,
    seed TEXT NOT NULL,
    repetitions BIGINT NOT NULL,
    samples BIGINT NOT NULL,
    status TEXT NOT NULL,
    reason TEXT,
    started_at TEXT NOT NULL,
    finished_at TEXT,
    duration_s DOUBLE PRECISION,
    tool_version TEXT NOT NULL,
    identity {{bytes}} NOT NULL,
    facts {{bytes}} NOT NULL,
    checksum BIGINT NOT NULL,
    done BIGINT NOT NULL DEFAULT 0,
    done_mirror BIGINT NOT NULL DEFAULT 0,
    owner_host TEXT,
    owner_pid BIGINT,
    owner_start TEXT,
    token TEXT,
    heartbeat DOUBLE PRECISION
);

CREATE TABLE contents (
    number {{serial}},
    row_hash {{bytes}} NOT NULL UNIQUE,
    body {{bytes}} NOT NULL,
    checksum BIGINT NOT NULL
);

CREATE TABLE samples (
    run BIGINT NOT NULL REFERENCES runs (number),
    position BIGINT NOT NULL,
    id {{bytes}} NOT NULL,
    row_hash {{bytes}} NOT NULL,
    content BIGINT REFERENCES contents (number),
    body {{bytes}} NOT NULL,
    checksum BIGINT NOT NULL,
    PRIMARY KEY (run, position)
);

CREATE TABLE outputs (
    run BIGINT NOT NULL REFERENCES runs (number),
    position BIGINT NOT NULL,
    repetition BIGINT NOT NULL,
    at TEXT,
    body {{bytes}} NOT NULL,
    checksum BIGINT NOT NULL,
    PRIMARY KEY (run, position, repetition)
);

CREATE TABLE scorings (
    run BIGINT NOT NULL REFERENCES runs (number),
    number BIGINT NOT NULL,
    cards {{bytes}} NOT NULL,
    identity {{bytes}} NOT NULL,
    status TEXT NOT NULL,
    started_at TEXT,
    finished_at TEXT,
    checksum BIGINT NOT NULL,
    done BIGINT NOT NULL DEFAULT 0,
    done_mirror BIGINT NOT NULL DEFAULT 0,
    PRIMARY KEY (run, number)
);

CREATE TABLE marks (
    run BIGINT NOT NULL REFERENCES runs (number),
    scoring BIGINT NOT NULL,
    position BIGINT NOT NULL,
    repetition BIGINT NOT NULL,
    body {{bytes}} NOT NULL,
    checksum BIGINT NOT NULL,
    final {{bytes}},
    final_checksum BIGINT,
    PRIMARY KEY (run, scoring, position, repetition)
);

CREATE TABLE entries (
    run BIGINT NOT NULL REFERENCES runs (number),
    position BIGINT NOT NULL,
    body {{bytes}} NOT NULL,
    checksum BIGINT NOT NULL,
    PRIMARY KEY (run, position)
);
