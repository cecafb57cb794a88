"""Messages between agents: the functions that send them, their limits, and what is due of them."""
