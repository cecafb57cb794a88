"""Copying a store to another place, between folders and buckets."""
