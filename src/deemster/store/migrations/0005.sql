-- The marks of a finished run once more, column by column, so that a comparison need not read every row.

CREATE TABLE columns (
    run BIGINT NOT NULL REFERENCES runs (number),
    part BIGINT NOT NULL,
    body {{bytes}} NOT NULL,
    checksum BIGINT NOT NULL,
    PRIMARY KEY (run, part)
);
