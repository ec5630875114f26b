"""Runs: evaluate, grade, rescore, record, monitor and improve, with one life-cycle for what is stored."""
