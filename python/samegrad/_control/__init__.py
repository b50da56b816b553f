"""Decisions and loops as part of a step, and the values that cross their borders."""
