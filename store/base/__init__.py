"""Shared parts of the store: the contract, limits, names, Arrow batches and the disk."""
