"""Changes in Keras's metrics: replicas, checkpoints, and sums that stay exact.

Keras adds up in the dtype in which it compares predictions with thresholds, float32, where a count
ends at 2**24. Here the variables are float64, and so is all that is summed into them; compared and
weighed is in the dtype that Keras has. IoU has a matrix of int64, or of the dtype it is given.
"""

from __future__ import annotations

from samegrad._keras.patching import COMPARED, Span, Text, importing

METRICS: dict[str, list[Text | Span]] = {
    # Metrics are in checkpoints, and change as a whole.
    "keras.src.metrics.metric": [
        Text(
            "from keras.src.utils.tracking import Tracker\n",
            "from keras.src.utils.tracking import Tracker\n"
            "from samegrad._keras.metric import StatefulMetric\n"
            "from samegrad.train._trackable import restore_pending\n",
        ),
        Text("class Metric(KerasSaveable):", "class Metric(StatefulMetric, KerasSaveable):"),
        Text(
            '        self._tracker.add_to_store("variables", variable)\n        return variable\n',
            "        StatefulMetric._note_dtype(variable, dtype)\n"
            '        self._tracker.add_to_store("variables", variable)\n'
            "        restore_pending(self)\n        return variable\n",
        ),
        Text(
            "                dtype=dtype,\n                trainable=False,\n"
            "                aggregation",
            "                dtype=StatefulMetric._dtype_of_sums(self, dtype),\n"
            "                trainable=False,\n                aggregation",
        ),
        # What was given first was the name.
        Text(
            "    def add_weight(self, shape=(), initializer=None, dtype=None, name=None):\n",
            "    def add_weight(self, *args, **kwargs):\n"
            "        shape, initializer, dtype, name = StatefulMetric._older_order(args, kwargs)\n",
        ),
    ],
    # A scalar of a replica counts as what it is of all examples; lists of numbers are arrays.
    "keras.src.metrics.reduction_metrics": [
        importing("from keras.src.saving import serialization_lib\n", COMPARED),
        Text(
            "    values = ops.cast(values, dtype=dtype)\n",
            "    from samegrad._tensor.example_axis import as_examples\n\n"
            "    values = as_examples(ops.cast(values, dtype=dtype))\n",
        ),
        Text(
            "        sample_weight = ops.broadcast_to(sample_weight, ops.shape(values))\n",
            "        from samegrad._keras.losses import check_weights\n\n"
            '        check_weights(sample_weight, values, "values of the metric")\n'
            "        sample_weight = ops.broadcast_to(sample_weight, ops.shape(values))\n",
        ),
        Text(
            "        mask = backend.get_keras_mask(y_pred)\n",
            "        from samegrad._keras.older.losses import arrays\n\n"
            "        y_true, y_pred = arrays(y_true, y_pred)\n"
            "        mask = backend.get_keras_mask(y_pred)\n",
        ),
        Text(
            "self._fn(y_true, y_pred, **self._fn_kwargs)",
            "compared(self._fn, y_true, y_pred, **self._fn_kwargs)",
        ),
        Text(
            "        values, _ = reduce_to_samplewise_values(\n",
            "        from samegrad._keras.metrics import adds_scalar\n\n"
            "        if adds_scalar(self, values, sample_weight):\n            return\n"
            "        values, _ = reduce_to_samplewise_values(\n",
        ),
        Text(
            "        values, sample_weight = reduce_to_samplewise_values(\n",
            "        from samegrad._keras.metrics import adds_scalar\n\n"
            "        if adds_scalar(self, values, sample_weight):\n            return\n"
            "        values, sample_weight = reduce_to_samplewise_values(\n",
        ),
    ],
    # Thresholds and weights have the dtype of the values, sums that of the variables.
    "keras.src.metrics.metrics_utils": [
        Text(
            "    variable_dtype = list(variables_to_update.values())[0].dtype\n",
            "    from samegrad._keras.metric import dtype_of_values\n\n"
            "    variable_dtype = dtype_of_values(variables_to_update.values())\n",
        ),
        Text(
            "    true_labels = ops.multiply(y_true, weights)\n"
            "    false_labels = ops.multiply((1.0 - y_true), weights)\n",
            "    dtype_of_sums = next(iter(variables_to_update.values())).dtype\n"
            "    true_labels = ops.multiply(y_true, weights)\n"
            "    false_labels = ops.multiply((1.0 - y_true), weights)\n"
            "    true_labels = ops.cast(true_labels, dtype_of_sums)\n"
            "    false_labels = ops.cast(false_labels, dtype_of_sums)\n",
        ),
    ],
    "keras.src.metrics.confusion_metrics": [
        Text(
            "        feasible = predicate(constrained, self.value)\n",
            "        from samegrad._keras.metric import dtype_of_values\n\n"
            "        constrained = ops.cast(constrained, dtype_of_values(self._variables))\n"
            "        feasible = predicate(constrained, self.value)\n",
        ),
    ],
    "keras.src.metrics.f_score_metrics": [
        Text(
            "            return ops.sum(val, axis=self.axis)\n",
            "            val = ops.cast(val, self.true_positives.dtype)\n"
            "            return ops.sum(val, axis=self.axis)\n",
        ),
        Text(
            "        precision = ops.convert_to_tensor(precision, dtype=self.dtype)\n"
            "        recall = ops.convert_to_tensor(recall, dtype=self.dtype)\n",
            "",
        ),
    ],
    "keras.src.metrics.regression_metrics": [
        Text(
            "        sample_weight = ops.cast(sample_weight, y_true.dtype)\n"
            "        weighted_y_true = y_true * sample_weight\n",
            "        wide = self.count.dtype\n"
            "        sample_weight = ops.cast(sample_weight, y_true.dtype)\n"
            "        weighted_y_true = y_true * sample_weight\n",
        ),
        Text(
            "ops.sum(weighted_y_true, axis=0)", "ops.sum(ops.cast(weighted_y_true, wide), axis=0)"
        ),
        Text(
            "ops.sum(y_true * weighted_y_true, axis=0)",
            "ops.sum(ops.cast(y_true * weighted_y_true, wide), axis=0)",
        ),
        Text(
            "                (y_true - y_pred) ** 2 * sample_weight,\n",
            "                ops.cast((y_true - y_pred) ** 2 * sample_weight, wide),\n",
        ),
        Text("ops.sum(sample_weight, axis=0)", "ops.sum(ops.cast(sample_weight, wide), axis=0)"),
        # An adjusted score counts the examples as exactly.
        Text(
            'ops.convert_to_tensor(self.num_samples, dtype="float32")',
            "ops.convert_to_tensor(self.num_samples)",
        ),
        Text(
            'p = ops.convert_to_tensor(self.num_regressors, dtype="float32")',
            "p = ops.convert_to_tensor(self.num_regressors, dtype=n.dtype)",
        ),
    ],
}
