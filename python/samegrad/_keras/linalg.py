"""keras.backend.linalg."""
