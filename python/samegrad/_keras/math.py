"""keras.backend.math."""
