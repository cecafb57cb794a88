"""What must be true. CONTRIBUTING.md says how a test is written here; `tests/tidy` holds the house rules."""
