"""Rules about calls: which wait for a person's approval, and what a person may decide."""
