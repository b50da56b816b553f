"""keras.backend.nn."""
