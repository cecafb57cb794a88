"""Translations from everlog to Letta and back: functions without effects."""
