"""Simulation of a store in a bucket, on the world of `tests.sim`."""
