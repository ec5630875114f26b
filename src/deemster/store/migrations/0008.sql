-- The experiment that a run belongs to: runs that were started together, to be compared.

ALTER TABLE runs ADD COLUMN experiment TEXT;
