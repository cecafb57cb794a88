"""What is common to all of the store? Its contract, limits, names, Arrow batches and the disk."""
