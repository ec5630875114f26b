-- The labels that people gave to samples in the viewer: one for each person and question.

CREATE TABLE labels (
    run BIGINT NOT NULL REFERENCES runs (number),
    position BIGINT NOT NULL,
    repetition BIGINT NOT NULL,
    metric TEXT NOT NULL,
    criterion TEXT NOT NULL,
    author TEXT NOT NULL,
    body {{bytes}} NOT NULL,
    checksum BIGINT NOT NULL,
    PRIMARY KEY (run, position, repetition, metric, criterion, author)
);
