"""How are calls written and read? Requests rendered to bytes, replies parsed and repaired, in each calling format."""
