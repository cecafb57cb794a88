"""Conversations that clients keep by themselves and resend with each request: which of their messages are new."""
