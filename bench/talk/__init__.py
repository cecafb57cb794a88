"""Kinds of talk that a search is measured on: public ones, and scripted ones in several languages."""
