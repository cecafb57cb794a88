"""Export of an agent out of a store, and restore into another one."""
