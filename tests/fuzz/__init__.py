"""Random typed programs: a generator, an interpreter in NumPy, comparisons and a shrinker."""
