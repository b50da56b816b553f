"""tf.keras: Keras 3 with samegrad's engine as its backend."""
