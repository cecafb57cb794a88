"""Derive memories of an open agent: reflect, edit granted memory blocks, divide plans, by command or while it is idle."""
