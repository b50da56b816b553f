"""Changes in Keras's layers."""

from __future__ import annotations

from samegrad._keras.patching import Span, Text, branch


def _partners(kind: str) -> Text:
    return Text(
        "self.backend.random.shuffle(\n            self.backend.numpy.arange(0, batch_size, "
        f'dtype="{kind}"),\n            seed=seed,\n        )',
        "_mixing.partners(batch_size, seed)",
    )


def _dense_input(kind: str) -> Text:
    remedy = {
        "sparse": "pass tf.sparse.to_dense(x), or x.values and x.indices as inputs of their own",
        "ragged": "pass x.to_tensor(), with a mask (tf.sequence_mask of x.row_lengths())",
    }
    return Text(
        f'f"`{kind}=True` is not supported with the {{backend.backend()}} "\n'
        '                "backend"',
        f'"[Input] inputs of a model are dense tensors: got {kind}=True; leave it out and "\n'
        f'                "{remedy[kind]}."',
    )


def _dense_output(layer: str) -> Text:
    return Text(
        '"`sparse=True` can only be used with the TensorFlow backend."',
        f'"[{layer}] the output is a dense tensor: got sparse=True; leave it out, and pass "\n'
        '                "the output to tf.sparse.from_dense."',
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


def _attention(scores: str) -> list[Text | Span]:
    """Masks are joined when somebody looks, and weights are dropped inside of the fused row."""
    return [
        Text(
            "from keras.src.api_export import keras_export\n",
            "from keras.src.api_export import keras_export\n"
            "from samegrad._keras import attention as _attention\n",
        ),
        Text(
            "attention_mask = self._compute_attention_mask(\n",
            "attention_mask = _attention.masks_of(\n                self,\n",
        ),
        Text(
            "        # Determine whether to use dot-product attention\n",
            "        found = _attention.attend(\n            self, (query, key, value), "
            f"attention_mask, use_causal_mask, training, {scores}\n        )\n"
            "        if found is not None:\n            return found, None\n"
            "        attention_mask = _attention.joined(attention_mask)\n",
        ),
    ]


_IMAGES = "keras.src.layers.preprocessing.image_preprocessing"

LAYERS: dict[str, list[Text | Span]] = {
    # A mask is of as many examples as what it masks, however many there are.
    "keras.src.layers.activations.softmax": [
        Text(
            "if m_dim is not None and i_dim is not None:",
            "if isinstance(m_dim, int) and isinstance(i_dim, int):",
        ),
    ],
    # Who asks for such inputs learns what to pass instead.
    "keras.src.layers.core.input_layer": [_dense_input("sparse"), _dense_input("ragged")],
    "keras.src.layers.layer": [
        # A build that fails leaves nothing behind.
        Span(
            "            with obj._open_name_scope():\n                obj._path = current_path()\n"
            "                original_build_method",
            "        obj.build = build_wrapper",
            "3361d2043336a258",
            "            from samegrad._keras.whole import building\n\n"
            "            def build():\n"
            "                with obj._open_name_scope():\n"
            "                    obj._path = current_path()\n"
            "                    original_build_method(*args, **kwargs)\n"
            "                signature = inspect.signature(original_build_method)\n"
            "                obj._build_shapes_dict = signature.bind(*args, **kwargs).arguments\n"
            "                obj.built = True\n"
            "                obj._post_build()\n"
            "                obj._lock_state()\n\n"
            "            building(obj, build)\n\n",
        ),
        branch("layer", "NumpyLayer as BackendLayer", "Layer as BackendLayer"),
        Span(
            "        for variable, value in zip(layer_weights, weights):",
            "    @property\n    def dtype_policy",
            "5da831fbcdc79c3d",
            "        BackendLayer._assign_all(self, layer_weights, weights)\n\n",
        ),
        # Older arguments, models that are built by their calls, and the learning phase.
        Text(
            "        if utils.is_default(self.build) and might_have_unbuilt_state(self):\n",
            "        if utils.is_default(self.build) and BackendLayer._build_by_call(\n"
            "            self, input_shape\n        ):\n            pass\n"
            "        elif utils.is_default(self.build) and might_have_unbuilt_state(self):\n",
        ),
        Text(
            '        input_dim_arg = kwargs.pop("input_dim", None)\n',
            "        BackendLayer._take_older_arguments(self, kwargs)\n"
            '        input_dim_arg = kwargs.pop("input_dim", None)\n',
        ),
        Text(
            "        if args:\n            # `args` is only kept to detect the legacy",
            "        if args and isinstance(args[0], str):\n"
            "            given = dict(locals())\n"
            "            return self.add_weight(**BackendLayer._older_weight(args, given))\n"
            "        if args:\n            # `args` is only kept to detect the legacy",
        ),
        Text(
            "            value = call_spec.arguments_dict.get(arg_name, None)\n\n",
            "            value = BackendLayer._phase_or(\n"
            "                arg_name, call_spec.arguments_dict.get(arg_name, None)\n"
            "            )\n\n",
        ),
        # Penalties of outputs and added losses are those of the examples of all replicas.
        Span(
            "                                # Normalize by batch size to ensure consistent",
            "                            self.add_loss(loss)\n",
            "2a3ba0670fbc4bfb",
            (32 * " " + "loss = BackendLayer._penalty_of_output(\n")
            + (36 * " " + "self.activity_regularizer, loss, output\n")
            + (32 * " " + ")\n"),
        ),
        Text(
            "            self._losses.extend(losses)\n",
            "            self._losses.extend(BackendLayer._added_losses(losses))\n",
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
    # No matrix of all pairs of a sequence is in memory.
    "keras.src.layers.attention.multi_head_attention": _attention("return_attention_scores"),
    "keras.src.layers.attention.grouped_query_attention": _attention(
        "self._return_attention_scores"
    ),
    # Rows of different lengths stay that, or lose nothing by what no place of a vocabulary is.
    "keras.src.utils.numerical_utils": [
        Text(
            '    if output_mode == "int":\n        return backend_module.cast(',
            "    from samegrad._tensor.ragged import RaggedTensor\n\n"
            "    if isinstance(inputs, RaggedTensor):\n"
            '        if output_mode in ("int", "one_hot"):\n'
            "            return inputs.with_values(encode_categorical_inputs(\n"
            "                inputs.flat_values, output_mode, depth, dtype, sparse, None, "
            "backend_module\n"
            "            ))\n"
            "        inputs = inputs.to_tensor(-1)\n"
            '    if output_mode == "int":\n        return backend_module.cast(',
        ),
    ],
    "keras.src.layers.preprocessing.category_encoding": [
        Text(
            "        inputs = self.backend.core.convert_to_tensor(inputs)\n",
            "        from samegrad._tensor.ragged import RaggedTensor\n\n"
            "        if not isinstance(inputs, RaggedTensor):\n"
            "            inputs = self.backend.core.convert_to_tensor(inputs)\n",
        ),
    ],
    "keras.src.layers.preprocessing.hashing": [
        Text(
            "                indices = self._hash_values_to_bins(inputs)\n",
            "                from samegrad._tensor.ragged import RaggedTensor\n\n"
            "                ragged = isinstance(inputs, RaggedTensor)\n"
            "                indices = self._hash_values_to_bins(\n"
            "                    inputs.flat_values if ragged else inputs\n                )\n"
            "                indices = inputs.with_values(indices) if ragged else indices\n",
        ),
    ],
    "keras.src.layers.preprocessing.discretization": [
        Text(
            "        indices = self.backend.numpy.digitize(inputs, self.bin_boundaries)\n",
            "        from samegrad._tensor.ragged import RaggedTensor\n\n"
            "        ragged = isinstance(inputs, RaggedTensor)\n"
            "        values = inputs.flat_values if ragged else inputs\n"
            "        values = self.dtype_policy.convert_input("
            "values, self.autocast, self.input_dtype)\n"
            "        indices = self.backend.numpy.digitize(values, self.bin_boundaries)\n"
            "        indices = inputs.with_values(indices) if ragged else indices\n",
        ),
        Text(
            "        super().__init__(name=name, dtype=dtype)\n",
            "        super().__init__(name=name, dtype=dtype)\n"
            "        self._convert_input_args = False\n",
        ),
    ],
    # Sizes are known already, strings are those of tf.strings, and ids may be ragged.
    "keras.src.layers.preprocessing.text_vectorization": [
        _dense_output("TextVectorization"),
        Text("                outputs.set_shape(static_padded_shape)\n", ""),
        Text(
            'if ragged and backend.backend() != "tensorflow":',
            'if ragged and backend.backend() != "samegrad":',
        ),
        Text(
            'and backend.backend() != "tensorflow"\n            ):',
            'and backend.backend() != "samegrad"\n            ):',
        ),
    ],
    "keras.src.layers.preprocessing.string_lookup": [_dense_output("StringLookup")],
    "keras.src.layers.preprocessing.integer_lookup": [_dense_output("IntegerLookup")],
    "keras.src.layers.preprocessing.hashed_crossing": [
        _dense_output("HashedCrossing"),
        Text("tf_backend.numpy.expand_dims", "tf.expand_dims", 2),
        Text("outputs.set_shape(first_shape)", "pass"),
        Text("                outputs.set_shape(first_shape + (1,))\n", ""),
    ],
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
    # Time is taken apart where the examples stay on axis 0, along which gradients are summed.
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
    # States that are kept between batches are those of the examples of all replicas.
    "keras.src.layers.rnn.rnn": [
        Text(
            "from keras.src.saving import serialization_lib\n",
            "from keras.src.saving import serialization_lib\n"
            "from samegrad._keras import states as _states\n",
        ),
        Text(
            "                initial_state = self.states\n",
            "                initial_state = _states.own_rows(self.states, sequences)\n",
        ),
        Text(
            "actual_batch_size = sequences.shape[0]",
            "actual_batch_size = _states.known_batch_size(sequences)",
        ),
        Text("self_state.assign(state)", "_states.keep(self_state, state)"),
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
