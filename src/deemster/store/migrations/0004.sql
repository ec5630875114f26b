-- The run that others are compared with: one for each suite, and one for each dataset of runs without a suite.

CREATE TABLE baselines (
    suite TEXT NOT NULL,
    dataset TEXT NOT NULL,
    run BIGINT NOT NULL REFERENCES runs (number),
    body {{bytes}} NOT NULL,
    checksum BIGINT NOT NULL,
    PRIMARY KEY (suite, dataset)
);
