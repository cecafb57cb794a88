"""Tests of everlog. CONTRIBUTING.md says how a test is written here; `tests/tidy` holds the house rules."""
