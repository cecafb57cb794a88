"""Calls of users' functions in processes of their own."""
