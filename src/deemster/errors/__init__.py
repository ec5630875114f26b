"""The exceptions that this package raises, and the texts of their messages.

    DeemsterError
    ├── InputError (also ValueError)          what the user gave cannot be used; exit code 2
    │   ├── DatasetError                      a golden dataset or a rubric dataset
    │   ├── RubricError                       a rubric, or a verdict on one of its criteria
    │   ├── VotesError                        votes of judges
    │   ├── OutputsError                      saved outputs
    │   ├── ReportError                       a report file, or a place where one should go
    │   │   └── ReportWriteError              a full disk, a device that fails; exit code 3
    │   ├── StoreError                        a store of runs, or a run that it does not hold
    │   │   ├── LeaseError                    a run that another process is writing
    │   │   ├── RunExistsError                a run whose id the store has already
    │   │   └── StorageError                  a full disk, a damaged store, a database that refuses; exit code 3
    │   └── ConfigurationError                a suite, a metric, an option, a gate rule
    ├── RunCancelledError                     user code cancelled the tasks of a run; exit code 3
    └── MissingExtraError (also ImportError)  an optional dependency is not installed; exit code 2

An ``InputError`` carries every issue that was found, not only the first.
"""

from deemster import load_lazily

load_lazily(__name__)
