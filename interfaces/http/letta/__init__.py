"""Letta's API, for programs that use `letta-client`: translations that decide nothing."""
