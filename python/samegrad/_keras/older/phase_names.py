"""What `tf.keras.backend` has of the learning phase."""

from samegrad._keras.older.layers import learning_phase, learning_phase_scope, set_learning_phase

__all__ = ["learning_phase", "learning_phase_scope", "set_learning_phase"]
