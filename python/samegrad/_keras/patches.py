"""What of Keras's own source is changed, and the text that each change replaces.

A patch whose text is not there, or is there another number of times, stops the import: a new
version of Keras has to be looked at line by line.
"""

from __future__ import annotations

import hashlib
from typing import NamedTuple


class Text(NamedTuple):
    """Every occurrence of `old`, of which there are `times`, becomes `new`."""

    old: str
    new: str
    times: int = 1


class Span(NamedTuple):
    """What lies from `begin` to before `end`, whose SHA-256 begins with `digest`, becomes `new`."""

    begin: str
    end: str
    digest: str
    new: str


def _branch(kind: str, backend_class: str, ours: str) -> Text:
    """Where Keras chooses a class by the backend's name, NumPy's branch becomes samegrad's."""
    return Text(
        f'elif backend.backend() == "numpy":\n    from keras.src.backend.numpy.{kind} import '
        f"{backend_class}",
        f'elif backend.backend() == "samegrad":\n    from samegrad._keras.{kind} import {ours}',
    )


def _converting(call: str) -> Text:
    """Where Keras calls a function of the program, its control flow is rewritten (AutoGraph)."""
    function, _, arguments = call.partition("(")
    return Text(call, f"converted({function})({arguments}")


_CONVERTED = "from samegrad._user_code import converted\n"


def _importing(line: str) -> Text:
    return Text(line, _CONVERTED + line)


def _import(names: str) -> str:
    return f"from samegrad._keras.{names}\n\n\n"


# What Keras calls TensorFlow.
_FACADE = 'LazyModule("samegrad._keras.tensorflow")'
# A module that is not there, whoever asks for it.
_NO_FILES = (
    'LazyModule("samegrad._keras.gfile", import_error_msg="[samegrad.keras] paths on other '
    'machines need TensorFlow, which samegrad never imports: copy the files.")'
)

PATCHES: dict[str, list[Text | Span]] = {
    # Neither the user's keras.json nor the environment chooses backend or types.
    "keras.src.backend.config": [
        Span(
            "# Attempt to read Keras config file.",
            'if "KERAS_MAX_EPOCHS"',
            "23362b8877ed8078",
            '_BACKEND = "samegrad"\n',
        ),
        Span('if _BACKEND != "tensorflow":', "@keras_export", "da6c13eaabae6303", ""),
    ],
    # TensorFlow's types: 64 bits stay.
    "keras.src.backend.common.dtypes": [
        Text('config.backend() == "tensorflow"', 'config.backend() == "samegrad"', 5),
    ],
    # A size that follows from the number of examples is None to Keras.
    "keras.src.backend.common.variables": [
        Text(
            "        if d is None:\n            standardized_shape.append(d)",
            '        if d is None or type(d).__name__ == "Dim":\n'
            "            standardized_shape.append(None)",
        ),
    ],
    "keras.src.layers.layer": [
        # A build that fails leaves nothing behind.
        Span(
            "            with obj._open_name_scope():\n                obj._path = current_path()\n"
            "                original_build_method",
            "        obj.build = build_wrapper",
            "3361d2043336a258",
            "            from samegrad._keras.whole import building\n\n"
            "            with building(obj):\n"
            "                with obj._open_name_scope():\n"
            "                    obj._path = current_path()\n"
            "                    original_build_method(*args, **kwargs)\n"
            "                signature = inspect.signature(original_build_method)\n"
            "                obj._build_shapes_dict = signature.bind(*args, **kwargs).arguments\n"
            "                obj.built = True\n"
            "                obj._post_build()\n"
            "                obj._lock_state()\n\n",
        ),
        _branch("layer", "NumpyLayer as BackendLayer", "Layer as BackendLayer"),
        Span(
            "        for variable, value in zip(layer_weights, weights):",
            "    @property\n    def dtype_policy",
            "5da831fbcdc79c3d",
            "        BackendLayer.assign_all(self, layer_weights, weights)\n\n",
        ),
        # Older arguments, models that are built by their calls, and the learning phase.
        Text(
            "        if utils.is_default(self.build) and might_have_unbuilt_state(self):\n",
            "        if utils.is_default(self.build) and BackendLayer.build_by_call(\n"
            "            self, input_shape\n        ):\n            pass\n"
            "        elif utils.is_default(self.build) and might_have_unbuilt_state(self):\n",
        ),
        Text(
            '        input_dim_arg = kwargs.pop("input_dim", None)\n',
            "        BackendLayer.take_older_arguments(self, kwargs)\n"
            '        input_dim_arg = kwargs.pop("input_dim", None)\n',
        ),
        Text(
            "        if args:\n            # `args` is only kept to detect the legacy",
            "        if args and isinstance(args[0], str):\n"
            "            given = dict(locals())\n"
            "            return self.add_weight(**BackendLayer.older_weight(args, given))\n"
            "        if args:\n            # `args` is only kept to detect the legacy",
        ),
        Text(
            "            value = call_spec.arguments_dict.get(arg_name, None)\n\n",
            "            value = BackendLayer.phase_or(\n"
            "                arg_name, call_spec.arguments_dict.get(arg_name, None)\n"
            "            )\n\n",
        ),
        # Penalties of outputs and added losses are those of the examples of all replicas.
        Span(
            "                                # Normalize by batch size to ensure consistent",
            "                            self.add_loss(loss)\n",
            "2a3ba0670fbc4bfb",
            (32 * " " + "loss = BackendLayer.penalty_of_output(\n")
            + (36 * " " + "self.activity_regularizer, loss, output\n")
            + (32 * " " + ")\n"),
        ),
        Text(
            "            self._losses.extend(losses)\n",
            "            self._losses.extend(BackendLayer.added_losses(losses))\n",
        ),
    ],
    # floatx decides until a policy is set.
    "keras.src.dtype_policies.dtype_policy": [
        Text("        set_dtype_policy(policy)\n    return policy", "    return policy"),
    ],
    "keras.src.models.model": [_branch("trainer", "NumpyTrainer as Trainer", "Trainer")],
    "keras.src.export.saved_model": [
        _branch(
            "export",
            "(\n        NumpyExportArchive as BackendSavedModelExportArchive,\n    )",
            "(\n        ExportArchive as BackendSavedModelExportArchive,\n    )",
        ),
    ],
    # The program's own `call`s and functions may decide by tensors.
    "keras.src.ops.operation": [
        _importing("from keras.src.saving.keras_saveable import KerasSaveable\n"),
        _converting("self.call(*args, **kwargs)"),
        Text("call_fn = self.call\n", "call_fn = converted(self.call)\n"),
    ],
    # Means are over the examples of all replicas; an axis that counts examples has no fixed size.
    "keras.src.losses.loss": [
        _importing("from keras.src.saving.keras_saveable import KerasSaveable\n"),
        _converting("self.call(y_true, y_pred)"),
        Text("if x1.shape[-1] == 1:", "if isinstance(x1.shape[-1], int) and x1.shape[-1] == 1:"),
        Text("if x2.shape[-1] == 1:", "if isinstance(x2.shape[-1], int) and x2.shape[-1] == 1:"),
        Text(
            "        in_mask = backend.get_keras_mask(y_pred)\n",
            "        from samegrad._keras.older.losses import arrays\n\n"
            "        y_true, y_pred = arrays(y_true, y_pred)\n"
            "        in_mask = backend.get_keras_mask(y_pred)\n",
        ),
        Text(
            "    allowed = {\n",
            '    if reduction == "auto":\n        reduction = "sum_over_batch_size"\n'
            "    allowed = {\n",
        ),
        Span(
            "def reduce_values(",
            "def scale_loss_for_distribution(",
            "1e38a3ec769c4ffd",
            _import("losses import apply_mask, reduce_values, reduce_weighted_values"),
        ),
    ],
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
            '        self._tracker.add_to_store("variables", variable)\n'
            "        restore_pending(self)\n        return variable\n",
        ),
        Text(
            "                dtype=dtype,\n                trainable=False,\n"
            "                aggregation",
            "                dtype=StatefulMetric.dtype_of_sums(self, dtype),\n"
            "                trainable=False,\n                aggregation",
        ),
        # What was given first was the name.
        Text(
            "    def add_weight(self, shape=(), initializer=None, dtype=None, name=None):\n",
            "    def add_weight(self, *args, **kwargs):\n"
            "        shape, initializer, dtype, name = StatefulMetric.older_order(args, kwargs)\n",
        ),
    ],
    # Sums over examples and pairs of them are those of all replicas.
    "keras.src.losses.losses": [
        _importing("from keras.src.saving import serialization_lib\n"),
        _converting("self.fn(y_true, y_pred, **self._fn_kwargs)"),
        Text(
            "    intersection = ops.sum(inputs * targets, axis=axis)\n",
            "    from samegrad._keras.losses import sum_of_all\n\n"
            "    intersection = sum_of_all(inputs * targets, axis)\n",
            2,
        ),
        Text(
            "        ops.sum(y_true, axis=axis)\n        + ops.sum(y_pred, axis=axis)\n",
            "        sum_of_all(y_true, axis)\n        + sum_of_all(y_pred, axis)\n",
        ),
        Text(
            "    fp = ops.sum((1 - targets) * inputs, axis=axis)\n"
            "    fn = ops.sum(targets * (1 - inputs), axis=axis)\n",
            "    fp = sum_of_all((1 - targets) * inputs, axis)\n"
            "    fn = sum_of_all(targets * (1 - inputs), axis)\n",
        ),
        Text(
            "    optim_pos = margin\n",
            "    from samegrad._keras.pairs import masks_of_pairs, rows_of_all\n\n"
            "    ref_embeddings, ref_labels = rows_of_all(y_pred, ref_embeddings, ref_labels)\n\n"
            "    optim_pos = margin\n",
        ),
        Text("build_pos_neg_masks(\n        y_true,", "masks_of_pairs(\n        y_true,"),
    ],
    # Micro-batches count as much as their losses; a warning is at the line of the program.
    "keras.src.optimizers.base_optimizer": [
        Text(
            '            warnings.warn(\n                "Gradients do not exist',
            "            from samegrad._location import warn\n\n"
            '            warn(\n                "Gradients do not exist',
        ),
        Text(
            "            is_update_step = (\n",
            "            grads = self._weighed(grads)\n            is_update_step = (\n",
        ),
        Text(
            "                steps = self.gradient_accumulation_steps\n"
            "                grads = [\n                    (g + acc_g) / steps for",
            "                total = self._weight_of_all()\n"
            "                grads = [\n"
            "                    ops.divide_no_nan(g + acc_g, ops.cast(total, g.dtype)) for",
        ),
    ],
    # A step that is traced reads the scale of the losses wherever it stands.
    "keras.src.optimizers.loss_scale_optimizer": [
        Span(
            "        self.step_counter = self.add_variable(",
            "        self.inner_optimizer.build(var_list)",
            "0e7cc3552b054907",
            "        from samegrad._keras.optimizer import make_scale\n\n"
            "        make_scale(self)\n",
        ),
        Text(
            "        scale = self.dynamic_scale if self.built else self.initial_scale\n",
            "        scaling(self)\n        scale = self.dynamic_scale\n",
        ),
        # No replica skips a step alone; the scale stays finite, and does not fall below 1.
        Text(
            "from keras.src.utils import tracking\n",
            "from keras.src.utils import tracking\n"
            "from samegrad._keras.older.optimizers import (\n"
            "    OlderLossScaleOptimizer, divisor, scaling\n)\n"
            "from samegrad._keras.optimizer import larger_scale, on_all_replicas, smaller_scale\n",
        ),
        Text(
            "class LossScaleOptimizer(optimizer.Optimizer):",
            "class LossScaleOptimizer(OlderLossScaleOptimizer, optimizer.Optimizer):",
        ),
        Text(
            "        scale = self.dynamic_scale\n        # Unscale",
            "        scale = divisor(self)\n        # Unscale",
        ),
        Text("ops.multiply(self.dynamic_scale, 2.0)", "larger_scale(self.dynamic_scale)", 2),
        Text("ops.multiply(self.dynamic_scale, 0.5)", "smaller_scale(self.dynamic_scale)", 2),
        Text(
            "return ops.all(ops.convert_to_tensor(finite_grads))",
            "return on_all_replicas(ops.all(ops.convert_to_tensor(finite_grads)))",
        ),
    ],
    # Layers track samegrad's variables, too.
    "keras.src.utils.tracking": [
        Text(
            "        for store_name, (is_attr_type, _) in self.config.items():\n"
            "            if is_attr_type(attr):\n",
            "        from samegrad._keras.variable import tracked_wrapper\n\n"
            "        wrapper = tracked_wrapper(attr)\n"
            "        if wrapper is not None:\n"
            "            self.track(wrapper)\n            return attr\n\n"
            "        for store_name, (is_attr_type, _) in self.config.items():\n"
            "            if is_attr_type(attr):\n",
        ),
    ],
    # A scalar of a replica counts as what it is of all examples; lists of numbers are arrays.
    "keras.src.metrics.reduction_metrics": [
        _importing("from keras.src.saving import serialization_lib\n"),
        Text(
            "    values = ops.cast(values, dtype=dtype)\n",
            "    from samegrad._examples import as_examples\n\n"
            "    values = as_examples(ops.cast(values, dtype=dtype))\n",
        ),
        Text(
            "        mask = backend.get_keras_mask(y_pred)\n",
            "        from samegrad._keras.older.losses import arrays\n\n"
            "        y_true, y_pred = arrays(y_true, y_pred)\n"
            "        mask = backend.get_keras_mask(y_pred)\n",
        ),
        _converting("self._fn(y_true, y_pred, **self._fn_kwargs)"),
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
    # Statistics are those of the global batch, synchronized or not.
    "keras.src.layers.normalization.batch_normalization": [
        Text(
            'if synchronized and backend.backend() != "tensorflow":',
            'if synchronized and backend.backend() != "samegrad":',
        ),
        Span(
            "        if mask is None:\n            return ops.moments(",
            "    def _renorm_correction_and_moments(",
            "85cf533c560e3efa",
            "        from samegrad._keras.statistics import batch_moments\n\n"
            "        return batch_moments(inputs, mask, self._reduction_axes)\n\n",
        ),
    ],
    # samegrad's seed decides where none is given.
    "keras.src.random.seed_generator": [
        Text(
            "    return python_random.randint(1, int(1e9))",
            "    from samegrad._keras.seeds import default_seed\n\n    return default_seed()",
        ),
    ],
    "keras.src.utils.rng_utils": [
        Text(
            "    if tf.available:\n        tf.random.set_seed(seed)",
            "    import samegrad.random\n\n    samegrad.random.set_seed(seed)",
        ),
    ],
    "keras.src.trainers.data_adapters": [
        Text('"DatasetV2"', '"Dataset"'),
        Text(
            '"tensorflow.python." in str(parent.__module__)',
            'str(parent.__module__).startswith("samegrad.")',
        ),
    ],
    # Sizes are known already.
    "keras.src.layers.preprocessing.text_vectorization": [
        Text("                outputs.set_shape(static_padded_shape)\n", ""),
    ],
    "keras.src.layers.preprocessing.hashed_crossing": [
        Text("tf_backend.numpy.expand_dims", "tf.expand_dims", 2),
        Text("outputs.set_shape(first_shape)", "pass"),
        Text("                outputs.set_shape(first_shape + (1,))\n", ""),
    ],
    # The functions of tf.keras.backend run on samegrad.
    "keras.src.legacy.backend": [
        Text(
            "from keras.src.utils.module_utils import tensorflow as tf\n",
            "from samegrad._keras.older import engine as tf\n",
        ),
        Text("    v = tf.Variable(\n", "    v = tf.new_variable(\n"),
    ],
    # TensorFlow is never imported.
    "keras.src.utils.module_utils": [
        Text('tensorflow = LazyModule("tensorflow")', f"tensorflow = {_FACADE}"),
        Text(
            'gfile = LazyModule("tensorflow.io.gfile", pip_name="tensorflow")',
            f"gfile = {_NO_FILES}",
        ),
    ],
    "keras.src.utils.backend_utils": [
        Text(
            '        if self._backend == "tensorflow":\n',
            '        if self._backend == "samegrad":\n'
            "            return getattr(backend_module, name)\n"
            '        if self._backend == "tensorflow":\n',
        ),
        Text('if backend not in ("tensorflow",', 'if backend not in ("samegrad", "tensorflow",'),
    ],
}


def _partners(kind: str) -> Text:
    return Text(
        "self.backend.random.shuffle(\n            self.backend.numpy.arange(0, batch_size, "
        f'dtype="{kind}"),\n            seed=seed,\n        )',
        "_mixing.partners(batch_size, seed)",
    )


def _mixed_labels(times: int) -> Text:
    return Text(
        "self.backend.numpy.take(\n                labels, permutation_order, axis=0\n"
        "            )",
        "_mixing.rows_of(labels, permutation_order)",
        times,
    )


_MIXED_IMAGES = Text(
    "self.backend.numpy.take(images, permutation_order, axis=0)",
    "_mixing.rows_of(images, permutation_order)",
)
_IMPORT_MIXING = Text(
    "from keras.src.api_export import keras_export\n",
    "from keras.src.api_export import keras_export\n"
    "from samegrad._keras import mixing as _mixing\n",
)


_IMAGES = "keras.src.layers.preprocessing.image_preprocessing"

PATCHES |= {
    # Layers of older programs, which compute with samegrad.
    "keras.src.legacy.layers": [
        Text(
            "from keras.src.utils.module_utils import tensorflow as tf\n",
            "import samegrad as tf\n",
        ),
        *(
            Text(
                "            output_shape = inputs.shape.as_list()\n"
                f"            output_shape[{axis}] = None\n"
                "            output.set_shape(output_shape)\n",
                "",
            )
            for axis in (-3, -2)
        ),
    ],
    # Time is taken apart where the examples stay on axis 0, along which gradients are added up.
    "keras.src.layers.rnn.time_distributed": [
        Text(
            "        inputs = time_distributed_transpose(inputs)\n        if mask is not None:\n"
            "            mask = time_distributed_transpose(mask)\n\n",
            "",
        ),
        Text('kwargs["mask"] = mask[i]', 'kwargs["mask"] = mask[:, i]'),
        Text("self.layer.call(inputs[i], ", "self.layer.call(inputs[:, i], "),
        Text(
            "if inputs.shape[0] is not None:\n            outputs = ops.stack(\n                "
            "[step_function(i) for i in range(inputs.shape[0])]\n            )\n"
            "            return time_distributed_transpose(outputs)",
            "if inputs.shape[1] is not None:\n            return ops.stack(\n                "
            "[step_function(i) for i in range(inputs.shape[1])], axis=1\n            )",
        ),
        Text("ops.arange(input_shape[0])", "ops.arange(input_shape[1])"),
    ],
    # The loudest sound is that of all replicas.
    "keras.src.layers.preprocessing.mel_spectrogram": [
        _IMPORT_MIXING,
        Text("self.backend.numpy.max(log_spec)", "_mixing.largest(log_spec)"),
    ],
    # Images are mixed with those of all replicas.
    f"{_IMAGES}.mix_up": [
        _IMPORT_MIXING,
        _partners("int64"),
        _MIXED_IMAGES,
        _mixed_labels(2),
    ],
    f"{_IMAGES}.cut_mix": [
        _IMPORT_MIXING,
        _partners("int32"),
        _MIXED_IMAGES,
        _mixed_labels(1),
    ],
    # Counts of colours are those of all replicas, and known while a step is traced.
    f"{_IMAGES}.equalization": [
        _IMPORT_MIXING,
        Text(
            "self.backend.numpy.bincount(\n                flat_indices,\n"
            "                minlength=nbins,\n            )",
            "_mixing.histogram(flat_indices, nbins)",
        ),
        Text('self.backend.name in ("jax", "openvino")', "True"),
    ],
    # Where the part begins is drawn in the step.
    f"{_IMAGES}.random_crop": [
        _IMPORT_MIXING,
        Span(
            '            if self.data_format == "channels_last":\n'
            "                if len(images.shape) == 4:\n                    images = images[\n",
            "            shape = self.backend.shape(images)\n            new_height",
            "9f845030edd5b802",
            "            images = _mixing.cropped(\n                images, crop_box_hstart, "
            "crop_box_wstart, (crop_height, crop_width),\n                self.data_format,\n"
            "            )\n\n",
        ),
    ],
}


def patched(module: str, source: str) -> str:
    """The source of a module of Keras with its patches.

    Raises:
        ImportError: It has not the text that a patch replaces.

    Example:
        >>> patched("no.such.module", "x = 1")
        'x = 1'
    """
    for patch in PATCHES.get(module, []):
        if isinstance(patch, Text):
            found = source.count(patch.old)
            _check(module, patch.old, found == patch.times, f"{found} times")
            source = source.replace(patch.old, patch.new)
            continue
        begin = source.find(patch.begin)
        end = source.find(patch.end, begin + 1)
        _check(module, patch.begin, 0 <= begin < end, "no such lines")
        digest = hashlib.sha256(source[begin:end].encode()).hexdigest()
        _check(module, patch.begin, digest.startswith(patch.digest), f"SHA-256 {digest[:16]}")
        source = source[:begin] + patch.new + source[end:]
    return source


def _check(module: str, text: str, holds: bool, found: str) -> None:
    if not holds:
        first = text.strip().splitlines()[0]
        raise ImportError(
            f"[samegrad.keras] the installed Keras is not the one that samegrad was made for: got "
            f"{found} in {module} at {first!r}; install the version that samegrad asks for."
        )
