-- The model calls of runs that may be resumed: a call is kept when it ends, before the marks that stand on it are made.

CREATE TABLE calls (
    run BIGINT NOT NULL REFERENCES runs (number),
    scoring BIGINT NOT NULL,
    call BIGINT NOT NULL,
    body {{bytes}} NOT NULL,
    checksum BIGINT NOT NULL,
    PRIMARY KEY (run, scoring, call)
);
