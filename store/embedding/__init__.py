"""Split texts into parts, and turn each part into words and a vector, for the index of the archive."""
