"""Shortcuts for Keras's lookups in every call of a layer and every operation.

Nothing here changes what is computed: tracing a step took a third longer without.
"""

from __future__ import annotations

from samegrad._keras.patching import Span, Text

_LEAVES = "from samegrad._keras.leaves import LEAVES as _LEAVES\n"

_ASKED = "        if not is_traceback_filtering_enabled():\n"
_TRIED = (
    "        signature = None\n        bound_signature = None\n        try:\n"
    "            return fn(*args, **kwargs)\n        except Exception as e:\n"
)

_UPDATE = ("    def update_step(", "    def get_config(")

SPEED: dict[str, list[Text | Span]] = {
    # `updates` has these for all variables at once.
    "keras.src.optimizers.adam": [Span(*_UPDATE, "f05ee8f4f5fd128e", None)],
    "keras.src.optimizers.sgd": [Span(*_UPDATE, "3015d32f473b40f4", None)],
    # Tensors, numbers and names are not structures, nor is a holder of one of them.
    "keras.src.tree.optree_impl": [
        Text(
            "from keras.src.backend.config import backend\n",
            f"from keras.src.backend.config import backend\n{_LEAVES}"
            "\n_NODES = frozenset({tuple, list, dict})\n",
        ),
        Text(
            "def is_nested(structure):\n    return not ",
            "def is_nested(structure):\n    kind = type(structure)\n"
            "    if kind in _LEAVES:\n        return False\n"
            "    return kind in _NODES or not ",
        ),
        Text(
            "    if not structures:\n"
            '        raise ValueError("Must provide at least one structure")\n\n'
            "    # Add check that",
            "    if type(shallow_structure) in _LEAVES and structures:\n"
            "        return func(*structures)\n"
            "    if not structures:\n"
            '        raise ValueError("Must provide at least one structure")\n\n'
            "    # Add check that",
        ),
        Text(
            "def pack_sequence_as(structure, flat_sequence):\n",
            "def pack_sequence_as(structure, flat_sequence):\n"
            "    if type(structure) is type(flat_sequence) is list:\n"
            "        if len(structure) == len(flat_sequence) == 1:\n"
            "            if not is_nested(structure[0]):\n"
            "                return flat_sequence[:]\n",
        ),
        Text(
            '        raise ValueError("Must provide at least one structure")\n\n'
            "    # Add check for same structures",
            '        raise ValueError("Must provide at least one structure")\n'
            "    if none_is_leaf and _LEAVES.issuperset(map(type, structures)):\n"
            "        return func(*structures)\n"
            "    whole = structures[0] if len(structures) == 1 and none_is_leaf else None\n"
            "    if type(whole) in (tuple, list) and len(whole) == 1:\n"
            "        if type(whole[0]) in _LEAVES:\n"
            "            return type(whole)((func(whole[0]),))\n\n"
            "    # Add check for same structures",
        ),
        Text(
            "def flatten(structure):\n",
            "def flatten(structure):\n"
            "    if type(structure) in _LEAVES:\n"
            "        return [structure]\n"
            "    if type(structure) in (tuple, list):\n"
            "        if _LEAVES.issuperset(map(type, structure)):\n"
            "            return list(structure)\n",
        ),
    ],
    # Tensors, numbers and variables are not structures to traverse.
    "keras.src.backend.common.keras_tensor": [
        Text(
            "from keras.src.utils.naming import auto_name\n",
            f"from keras.src.utils.naming import auto_name\n{_LEAVES}",
        ),
        Span(
            "def any_symbolic_tensors(",
            '@keras_export(["keras.utils.is_keras_tensor"',
            "78f03c7fd4577988",
            "def any_symbolic_tensors(args=None, kwargs=None):\n"
            "    for x in args or ():\n"
            "        if type(x) not in _LEAVES and _has_symbolic(x):\n"
            "            return True\n"
            "    for x in kwargs.values() if kwargs else ():\n"
            "        if type(x) not in _LEAVES and _has_symbolic(x):\n"
            "            return True\n"
            "    return False\n\n\n"
            "def _has_symbolic(x):\n"
            "    if isinstance(x, KerasTensor):\n"
            "        return True\n"
            '    if hasattr(x, "_as_tensor") or not tree.is_nested(x):\n'
            "        return False\n"
            "    return any(isinstance(nested, KerasTensor) for nested in tree.flatten(x))\n\n\n",
        ),
    ],
    # A kernel that is as it was made.
    "keras.src.layers.core.dense": [
        Text(
            "    def kernel(self):\n        from keras.src.quantizers import gptq_core\n",
            "    def kernel(self):\n"
            "        if self.built and self.quantization_mode is None and not self.lora_enabled:\n"
            "            return self._kernel\n"
            "        from keras.src.quantizers import gptq_core\n",
        ),
    ],
    # How many axes there are is known where their sizes are not.
    "keras.src.losses.loss": [
        Text(
            "    x1_rank = len(x1.shape)\n    x2_rank = len(x2.shape)\n",
            "    x1_rank, x2_rank = x1.ndim, x2.ndim\n",
        ),
    ],
    # One input is what one input is wanted for.
    "keras.src.models.functional": [
        Text(
            "    def _standardize_inputs(self, inputs):\n",
            "    def _standardize_inputs(self, inputs):\n"
            "        if BackendLayer._is_standard(inputs, self._inputs):\n"
            "            return [inputs]\n",
        ),
        Text(
            "from keras.src.layers.layer import Layer\n",
            "from keras.src.layers.layer import BackendLayer\n"
            "from keras.src.layers.layer import Layer\n",
        ),
        Text(
            "        try:\n            # We first normalize to tuples before",
            "        if type(inputs) is type(self._inputs_struct) is list:\n"
            "            if len(inputs) == len(self._inputs_struct) == 1 and not (\n"
            "                tree.is_nested(inputs[0])\n"
            "                or tree.is_nested(self._inputs_struct[0])\n            ):\n"
            "                return\n"
            "        try:\n            # We first normalize to tuples before",
        ),
    ],
    # Attributes of a tensor of samegrad are its own.
    "keras.src.backend.common.tensor_attributes": [
        Text(
            "from keras.src.backend.common import global_state\n",
            "from keras.src.backend.common import global_state\n"
            "from samegrad._tensor.conversion import Tensor as _Tensor\n",
        ),
        Text(
            "    if not hasattr(tensor, attr):\n",
            "    if type(tensor) is _Tensor:\n        return getattr(tensor, attr, None)\n"
            "    if not hasattr(tensor, attr):\n",
        ),
    ],
    # What wraps one call of a function needs no name; how errors look is asked for with an error.
    "keras.src.utils.traceback_utils": [
        Text(
            "        tf_errors = None\n\n    @wraps(fn)\n",
            "        tf_errors = None\n\n",
        ),
        Text(
            f"{_ASKED}            return fn(*args, **kwargs)\n\n{_TRIED}",
            f"{_TRIED}    {_ASKED}                raise\n",
        ),
    ],
    # The sizes as the engine has them: None for what follows from the examples.
    "keras.src.layers.input_spec": [
        Text(
            "        shape = backend.standardize_shape(x.shape)\n",
            "        shape = (\n            x._shape\n            if backend.is_tensor(x)\n"
            "            else backend.standardize_shape(x.shape)\n        )\n",
        ),
    ],
    "keras.src.layers.layer": [
        # A call binds its arguments by the signature; most are plain.
        Text(
            "        bound_args = signature.bind(*args, **kwargs)\n\n"
            "        # Combine the two dicts.\n"
            "        self.user_arguments_dict = {**call_args, **bound_args.arguments}\n\n"
            "        bound_args.apply_defaults()\n",
            "        given, bound = BackendLayer._bound(signature, args, kwargs)\n"
            "        self.user_arguments_dict = {**call_args, **given}\n\n",
        ),
        Span(
            "        arg_dict = {}\n        arg_names = []\n",
            "def get_arguments_dict(",
            "ba9181e351b1767a",
            "        BackendLayer._sort_arguments(self, bound)\n\n\n",
        ),
        # The dtype of a tensor is a name already.
        Text(
            "or backend.standardize_dtype(args[0].dtype) != self.input_dtype",
            "or BackendLayer._dtype_name(args[0]) != self.input_dtype",
        ),
        # Asked for four times a call: a policy is seldom a map, which is an abstract base class.
        Text(
            "        if isinstance(self._dtype_policy, DTypePolicyMap) and self.path:\n"
            "            policy = self._dtype_policy[self.path]\n",
            "        if type(self._dtype_policy) is not DTypePolicy and (\n"
            "            isinstance(self._dtype_policy, DTypePolicyMap) and self.path\n"
            "        ):\n            policy = self._dtype_policy[self.path]\n",
            3,
        ),
        Text(
            "from keras.src.dtype_policies import DTypePolicyMap\n",
            "from keras.src.dtype_policies import DTypePolicyMap\n"
            "from keras.src.dtype_policies.dtype_policy import DTypePolicy\n",
        ),
        Text(
            "        from keras.src.utils import jax_utils  # avoid circular imports\n\n"
            "        if self._parent_path is None:\n",
            "        if self._parent_path is None:\n"
            "            from keras.src.utils import jax_utils\n\n",
        ),
        # Asked for by every step, of layers in layers.
        Text(
            "        variables = []\n        seen_ids = set()\n"
            "        for v in self._trainable_variables + self._non_trainable_variables:\n",
            "        if not self._seed_generators:\n"
            "            return BackendLayer._all_variables(self, Layer.variables)\n"
            "        variables = []\n        seen_ids = set()\n"
            "        for v in self._trainable_variables + self._non_trainable_variables:\n",
        ),
        # Flags are set once.
        Text(
            "        self._called = True\n\n",
            "        called = self._called\n        if not called:\n"
            "            self._called = True\n"
            "        if called or BackendLayer._is_graph(self):\n"
            "            outputs = BackendLayer._plain_call(self, Layer, args, kwargs)\n"
            "            if outputs is not BackendLayer._not_plain:\n"
            "                return outputs\n\n",
        ),
        Text(
            "                self.built = True\n                # Record",
            "                if not self.built:\n                    self.built = True\n"
            "                # Record",
        ),
        # A layer without layers that was called before makes nothing that has a path.
        Text(
            "            with self._open_name_scope():\n                current_scope",
            "            with (\n                BackendLayer._no_scope\n"
            "                if called and not self._layers\n"
            "                else self._open_name_scope()\n            ):\n"
            "                current_scope",
        ),
        # Without a mask there is none to compute, but where the layer makes one.
        Text(
            "            if self.supports_masking:\n                self._set_mask_metadata(",
            "            if previous_mask is None and BackendLayer._keeps_mask(self, Layer):\n"
            "                pass\n"
            "            elif self.supports_masking:\n                self._set_mask_metadata(",
        ),
        # Symbolic arguments were seen already.
        Text(
            "        if any_symbolic_tensors(original_args, original_kwargs):\n            Node(",
            "        if not call_spec.eager and any_symbolic_tensors(\n"
            "            original_args, original_kwargs\n        ):\n            Node(",
        ),
        # A layer that is built makes no variables that were named in a scope.
        Text(
            "        with self._open_name_scope():\n            self._maybe_build(call_spec)\n",
            "        if not self.built:\n            with self._open_name_scope():\n"
            "                self._maybe_build(call_spec)\n",
        ),
        # Of arguments by name, `training` alone is most often given.
        Text(
            "        if (\n            kwargs\n            or len(args) != 1\n",
            "        if (\n            BackendLayer._has_values(kwargs)\n"
            "            or len(args) != 1\n",
        ),
        # Flags are set with every call.
        Text(
            "        name, value = self._setattr_hook(name, value)\n",
            '        if type(value) is bool and "_tracker" in self.__dict__:\n'
            "            super().__setattr__(name, value)\n            return\n"
            "        name, value = self._setattr_hook(name, value)\n",
        ),
    ],
}
