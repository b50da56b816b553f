"""Changes in Keras's source, and the text that each change replaces.

Larger parts have tables of their own, which are joined at the end.
"""

from __future__ import annotations

from samegrad._keras.deferred_patches import DEFERRED
from samegrad._keras.interrupt_patches import INTERRUPTS
from samegrad._keras.layer_patches import LAYERS
from samegrad._keras.metric_patches import METRICS
from samegrad._keras.patching import COMPARED, Span, Text, branch, converting, imported, importing
from samegrad._keras.saving_patches import SAVING
from samegrad._keras.speed_patches import SPEED

_FACADE = 'LazyModule("samegrad._keras.tensorflow")'
# A module that is not there, whoever asks for it.
_NO_FILES = (
    'LazyModule("samegrad._keras.gfile", import_error_msg="[samegrad.keras] paths on other '
    'machines need TensorFlow, which samegrad never imports: copy the files.")'
)

_CHANGES: dict[str, list[Text | Span]] = {
    **LAYERS,
    **METRICS,
    **SAVING,
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
        # Most are names already, and asked for with every operation.
        Text(
            "    if dtype is None:\n        return config.floatx()\n    dtype = dtypes.PYTHON",
            "    if type(dtype) is str and dtype in dtypes.ALLOWED_DTYPES:\n        return dtype\n"
            "    if dtype is None:\n        return config.floatx()\n    dtype = dtypes.PYTHON",
        ),
        Text(
            "        if d is None:\n            standardized_shape.append(d)",
            '        if d is None or type(d).__name__ == "Dim":\n'
            "            standardized_shape.append(None)",
        ),
    ],
    # floatx decides until a policy is set.
    "keras.src.dtype_policies.dtype_policy": [
        Text("        set_dtype_policy(policy)\n    return policy", "    return policy"),
        # Policies of version 2.3 held the scale of the losses.
        Text(
            "    def __init__(self, name=None):\n",
            "    def __init__(self, name=None, loss_scale=None):\n"
            "        if loss_scale is not None:\n"
            "            from samegrad._keras.older.policies import refuse_loss_scale\n\n"
            "            refuse_loss_scale(name, loss_scale)\n",
        ),
    ],
    # Strings of a batch stay: what reads them may not take others.
    "keras.src.trainers.trainer": [
        Text(
            "                if v is None:\n                    return None\n",
            '                if v is None or v.dtype == "string":\n                    return v\n',
        ),
    ],
    "keras.src.models.model": [
        branch("trainer", "NumpyTrainer as Trainer", "Trainer"),
        Text(
            "from keras.src.trainers import trainer as base_trainer\n",
            "from keras.src.trainers import trainer as base_trainer\n"
            "from samegrad._keras.older.models import OlderModel\n",
        ),
        Text(
            "class Model(Trainer, base_trainer.Trainer, Layer):",
            "class Model(OlderModel, Trainer, base_trainer.Trainer, Layer):",
        ),
        Text(
            "    def save_weights(self, filepath, overwrite=True, max_shard_size=None):",
            "    def save_weights(\n        self, filepath, overwrite=True, max_shard_size=None, "
            "save_format=None\n    ):",
        ),
        Text(
            "overwrite=overwrite, max_shard_size=max_shard_size\n",
            "overwrite=overwrite, max_shard_size=max_shard_size,\n"
            "            save_format=save_format,\n",
        ),
        Text("        saving_api.load_weights(\n", "        return saving_api.load_weights(\n"),
    ],
    "keras.src.export.saved_model": [
        branch(
            "export",
            "(\n        NumpyExportArchive as BackendSavedModelExportArchive,\n    )",
            "(\n        ExportArchive as BackendSavedModelExportArchive,\n    )",
        ),
    ],
    "keras.src.export.onnx": [
        Text(
            '    if backend.backend() == "tensorflow":\n'
            "        from keras.src.utils.module_utils import tf2onnx\n",
            '    if backend.backend() == "samegrad":\n'
            "        from samegrad._keras.export import export_onnx as export_model\n\n"
            "        export_model(model, filepath, input_signature, opset_version)\n\n"
            '    elif backend.backend() == "tensorflow":\n'
            "        from keras.src.utils.module_utils import tf2onnx\n",
        ),
    ],
    "keras.src.export.tfsm_layer": [
        Text('if backend.backend() != "tensorflow":', 'if backend.backend() != "samegrad":'),
        # The variable that the endpoint reads is the layer's, and no copy of it.
        Span(
            "        variable = backend.Variable(\n",
            "        self._track_variable(variable)",
            "06666a4ec5522030",
            "        from samegrad._keras.variable import tracked_wrapper\n\n"
            "        variable = tracked_wrapper(weight)\n",
        ),
    ],
    # The program's own `call`s and functions may decide by tensors.
    "keras.src.ops.operation": [
        importing("from keras.src.saving.keras_saveable import KerasSaveable\n"),
        converting("self.call(*args, **kwargs)"),
        Text("call_fn = self.call\n", "call_fn = converted(self.call)\n"),
        Text(
            "            raise new_e.with_traceback(e.__traceback__) from None\n",
            '            new_e.__notes__ = [*getattr(e, "__notes__", ())]\n'
            "            raise new_e.with_traceback(e.__traceback__) from None\n",
        ),
    ],
    # Means are over the examples of all replicas; an axis that counts examples has no fixed size.
    "keras.src.losses.loss": [
        importing("from keras.src.saving.keras_saveable import KerasSaveable\n", COMPARED),
        Text("self.call(y_true, y_pred)", "compared(self.call, y_true, y_pred)"),
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
            imported("losses import apply_mask, reduce_values, reduce_weighted_values"),
        ),
    ],
    # Sums over examples and pairs of them are those of all replicas.
    "keras.src.losses.losses": [
        importing("from keras.src.saving import serialization_lib\n"),
        converting("self.fn(y_true, y_pred, **self._fn_kwargs)"),
        # Whether labels are binary, those of all replicas say.
        Text(
            "    is_binary = ops.all((ops.logical_or(are_zeros, are_ones)))\n",
            "    from samegrad._keras.losses import all_of_all\n\n"
            "    is_binary = all_of_all(ops.logical_or(are_zeros, are_ones))\n",
        ),
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
    # Micro-batches count as much as their losses; a warning is at the line of the program. All
    # averages are stored alike.
    "keras.src.optimizers.base_optimizer": [
        Text(
            '            warnings.warn(\n                "Gradients do not exist',
            "            from samegrad._base.location import warn\n\n"
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
        Text("average.assign(\n", "self.assign(\n                        average,\n"),
    ],
    # A divisor: where it is a denormal number, zero would make the update NaN.
    "keras.src.optimizers.adafactor": [
        Text(
            "            self.assign(\n                v,\n                ops.multiply(\n",
            "            v.assign(\n                ops.multiply(\n",
        ),
    ],
    # A step that is traced reads the scale of the losses wherever it stands.
    "keras.src.optimizers.loss_scale_optimizer": [
        Span(
            "        self.step_counter = self.add_variable(",
            "        self.inner_optimizer.build(var_list)",
            "0e7cc3552b054907",
            "        from samegrad._keras.loss_scale import make_scale\n\n"
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
            "from samegrad._keras.loss_scale import larger_scale, on_all_replicas, smaller_scale\n",
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
    # Layers also track samegrad's variables.
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
    # The examples of one target are not targets of several outputs.
    "keras.src.trainers.compile_utils": [
        Text(
            "                y_true = tree.pack_sequence_as(y_pred, y_true)\n",
            "                if not tree.is_nested(y_true):\n"
            "                    raise ValueError\n"
            "                y_true = tree.pack_sequence_as(y_pred, y_true)\n",
        ),
    ],
    "keras.src.trainers.data_adapters": [
        Text('"DatasetV2"', '"Dataset"'),
        Text(
            '"tensorflow.python." in str(parent.__module__)',
            'str(parent.__module__).startswith("samegrad.")',
        ),
    ],
    # Datasets of samegrad in split_dataset; `batch` is one of their nodes.
    "keras.src.utils.dataset_utils": [
        Text(
            '            "tensorflow.python.data",  # TF classic\n'
            '            "tensorflow.data",  # newer TF paths\n',
            '            "samegrad.data",\n',
        ),
        Text(
            "        is_tensorflow_tensor,\n    )\n",
            "        is_torch_tensor,\n    )\n    from samegrad import is_tensor as "
            "is_tensorflow_tensor\n",
        ),
        Text(
            '    return hasattr(dataset, "_batch_size")\n',
            "    from samegrad.data._nodes import BatchNode\n\n"
            "    return isinstance(dataset._node, BatchNode)\n",
        ),
        Text("dataset._batch_size", "dataset._node._size"),
    ],
    # The functions of tf.keras.backend run on samegrad.
    "keras.src.legacy.backend": [
        Text(
            "from keras.src.utils.module_utils import tensorflow as tf\n",
            "from samegrad._keras.older import engine as tf\n",
        ),
        Text("    v = tf.Variable(\n", "    v = tf.new_variable(\n"),
    ],
    # Files for TensorBoard are written by tf.summary.
    "keras.src.callbacks.tensorboard": [
        Text(
            "            import tensorflow.summary as summary\n\n            self._summary",
            "            from samegrad import summary\n\n            self._summary",
        ),
        Text(
            "    import tensorflow.summary as summary\n"
            "    from tensorflow.compat.v1 import SummaryMetadata\n\n"
            "    summary_metadata = SummaryMetadata()\n",
            "    from samegrad import summary\n"
            "    from samegrad.summary._writer import package\n\n"
            "    summary_metadata = package().proto.summary_pb2.SummaryMetadata()\n",
        ),
        Text(
            "        from google.protobuf import text_format\n"
            "        from tensorboard.plugins import projector\n",
            "        from samegrad._keras import projector\n",
        ),
        Text("text_format.MessageToString(config)", "projector.text_of(config)"),
    ],
    # matplotlib is imported when something is drawn.
    "keras.src.visualization.plot_image_gallery": [
        Text(
            "try:\n    import matplotlib.pyplot as plt\nexcept ImportError:\n    plt = None\n",
            "from keras.src.utils.module_utils import LazyModule\n\n"
            'plt = LazyModule("matplotlib.pyplot", pip_name="matplotlib")\n',
        ),
    ],
    "keras.src.visualization.plot_bounding_box_gallery": [
        Text(
            "try:\n    from matplotlib import patches  # For legend patches\n"
            "except ImportError:\n    patches = None\n",
            "from keras.src.utils.module_utils import LazyModule\n\n"
            'patches = LazyModule("matplotlib.patches", pip_name="matplotlib")\n',
        ),
    ],
    # Who has a table has imported pandas.
    "keras.src.trainers.data_adapters.array_slicing": [
        Text(
            "try:\n    import pandas\nexcept ImportError:\n    pandas = None\n",
            'from samegrad._keras.loaded import Loaded\n\npandas = Loaded("pandas")\n',
        ),
        Text(  # strings
            "                dtype is not object\n",
            '                getattr(dtype, "kind", "") not in ("O", "S", "U")\n'
            "                and dtype is not object\n",
        ),
        Text(  # tables have __array__
            "if pandas:\n    ARRAY_TYPES = ARRAY_TYPES + (pandas.Series, pandas.DataFrame)\n", ""
        ),
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
        # Rows of different lengths stay that.
        Text(
            '    if backend_module.backend() != "tensorflow" and not in_tf_graph():\n'
            "        outputs",
            "    from samegrad._tensor.ragged import RaggedTensor\n\n"
            "    if not in_tf_graph() and not isinstance(outputs, RaggedTensor):\n        outputs",
        ),
    ],
}

_ALL = (_CHANGES, INTERRUPTS, DEFERRED, SPEED)

# By the module's name; in the order given.
PATCHES: dict[str, list[Text | Span]] = {
    module: [patch for part in _ALL for patch in part.get(module, [])]
    for module in dict.fromkeys(name for part in _ALL for name in part)
}
