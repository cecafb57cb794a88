"""Keeping a store in a bucket: objects behind the protocol of the disk."""
