"""What Keras looks up for every call of a layer and every operation, made short.

Nothing here changes what is computed: tracing a step took a third longer without.
"""

from __future__ import annotations

from samegrad._keras.patching import Span, Text

_LEAVES = (
    "from samegrad._tensor.conversion import Tensor as _Tensor\n\n"
    "_LEAVES = frozenset({_Tensor, float, int, str, bool, type(None)})\n"
)

_UPDATE = ("    def update_step(", "    def get_config(")

SPEED: dict[str, list[Text | Span]] = {
    # `updates` has these for all variables at once.
    "keras.src.optimizers.adam": [Span(*_UPDATE, "f05ee8f4f5fd128e", None)],
    "keras.src.optimizers.sgd": [Span(*_UPDATE, "3015d32f473b40f4", None)],
    # Tensors, numbers and names are no structures, nor is what holds one of them.
    "keras.src.tree.optree_impl": [
        Text(
            "from keras.src.backend.config import backend\n",
            f"from keras.src.backend.config import backend\n{_LEAVES}",
        ),
        Text(
            "def is_nested(structure):\n    return not ",
            "def is_nested(structure):\n    return type(structure) not in _LEAVES and not ",
        ),
        Text(
            '        raise ValueError("Must provide at least one structure")\n\n'
            "    # Add check for same structures",
            '        raise ValueError("Must provide at least one structure")\n'
            "    whole = structures[0] if len(structures) == 1 and none_is_leaf else None\n"
            "    if type(whole) in (tuple, list) and len(whole) == 1:\n"
            "        if type(whole[0]) in _LEAVES:\n"
            "            return type(whole)((func(whole[0]),))\n\n"
            "    # Add check for same structures",
        ),
        Text(
            "def flatten(structure):\n",
            "def flatten(structure):\n"
            "    if type(structure) in (tuple, list):\n"
            "        if all(type(part) in _LEAVES for part in structure):\n"
            "            return list(structure)\n",
        ),
    ],
    # What wraps one call of a function needs no name.
    "keras.src.utils.traceback_utils": [
        Text(
            "        tf_errors = None\n\n    @wraps(fn)\n",
            "        tf_errors = None\n\n",
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
            "        given, bound = BackendLayer.bound(signature, args, kwargs)\n"
            "        self.user_arguments_dict = {**call_args, **given}\n\n",
        ),
        Text(
            "        for name, value in bound_args.arguments.items():\n            arg_dict[",
            "        for name, value in bound.items():\n            arg_dict[",
        ),
        # The dtype of a tensor is a name already.
        Text(
            "or backend.standardize_dtype(args[0].dtype) != self.input_dtype",
            "or BackendLayer.dtype_name(args[0]) != self.input_dtype",
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
        # A layer that is built makes no variables that were named in a scope.
        Text(
            "        with self._open_name_scope():\n            self._maybe_build(call_spec)\n",
            "        if not self.built:\n            with self._open_name_scope():\n"
            "                self._maybe_build(call_spec)\n",
        ),
        # Of arguments by name, `training` alone is most often given.
        Text(
            "        if (\n            kwargs\n            or len(args) != 1\n",
            "        if (\n            BackendLayer.has_values(kwargs)\n"
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
