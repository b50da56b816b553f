"""Spellings of TensorFlow 2.4 to 2.15 that differ in Keras 3.

`samegrad._keras.additions` names the modules that add names; the others are mixed into Keras's
classes by `samegrad._keras.patches`.

* optimizers: `lr=`, `decay=`, `minimize`, `compute_gradients`, `get_weights`, `get_slot`,
  `variables()`, scaled losses; `optimizers.legacy` and `optimizers.experimental`.
* layers: `batch_input_shape=`, `weights=`, `add_weight(name, shape, ...)`, the learning phase.
* metrics: `reset_states`, `add_weight(name, ...)`, `MeanTensor`, `MeanRelativeError`.
* backend: the functions of `tf.keras.backend`.
"""
