"""One file for each claim about speed, run as `python -m bench.NAME [--quick]`; `harness.py` is what they share."""
