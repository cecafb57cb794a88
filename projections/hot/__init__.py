"""Keep the table `records` of an engine up to date, and what is planned, parsed and read once for it."""
