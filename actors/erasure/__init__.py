"""Plan an erasure: the selected records, the records that say the same, and how all of them are erased together."""
