"""The interactive lesson of `everlog tour`: its steps, its own store and its screen."""
