"""keras.backend.numpy."""
