-- What judges were asked and what they replied, for people to read: a row for each mark whose prompts are kept.

CREATE TABLE prompts (
    run BIGINT NOT NULL REFERENCES runs (number),
    scoring BIGINT NOT NULL,
    position BIGINT NOT NULL,
    repetition BIGINT NOT NULL,
    metric BIGINT NOT NULL,
    body {{bytes}} NOT NULL,
    checksum BIGINT NOT NULL,
    PRIMARY KEY (run, position, repetition, scoring, metric)
);
