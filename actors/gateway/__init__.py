"""Call model endpoints from one place, with queues, limits, budgets and retries."""
