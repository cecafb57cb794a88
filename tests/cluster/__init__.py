"""The cluster: its configuration here, and (marked `ray`) what must hold when hosts and nodes die."""
