"""Parts of `everlog.testing`: a scripted model, a clock that a test moves, a system in memory."""
