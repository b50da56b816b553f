"""keras.backend.image."""
