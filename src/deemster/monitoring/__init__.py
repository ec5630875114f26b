"""Recorded traffic: recorders, the pass-rate over time, golden samples from what failed."""
