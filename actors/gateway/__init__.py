"""Whose request goes next? The one place that asks models: queues, limits, budgets, retries."""
