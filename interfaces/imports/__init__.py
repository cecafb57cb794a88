"""Conversations from elsewhere: which format a file has, and the messages in it."""
