"""Evaluates a dataset: the suite, its one resolver, the look before the run, and the run itself."""
