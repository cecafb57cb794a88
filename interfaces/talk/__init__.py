"""Commands that run turns: chat, send, timer, cancel, rerun."""
