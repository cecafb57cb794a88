"""Benchmarks: one file for each claim about speed, run as `python -m bench.NAME [--quick]`; `support/harness.py` is
common to all.
"""
