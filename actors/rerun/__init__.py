"""Reruns ("what if"): a fork gets the same inputs again, with another model, prompt or memory."""
