"""How is a recorded life watched? The console of `everlog replay`."""
