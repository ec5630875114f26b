-- A graded item is an output with one mark, in the tables of every run. `graded_items.py` has moved it there before this.

DROP TABLE entries;
