"""Damage every kind of file of a store, and see that it is noticed."""
