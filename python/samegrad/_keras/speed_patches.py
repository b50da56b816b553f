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
