"""Replays of a recorded agent: rebuild its projections, verify its requests and replies, compare two moments."""
