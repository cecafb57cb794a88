"""Tests of clusters: configuration, and (marked `ray`) what must hold when hosts and nodes fail."""
