"""keras.backend.random."""
