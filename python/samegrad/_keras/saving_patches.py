"""Changes in Keras's saving of models and weights."""

from __future__ import annotations

from samegrad._keras.patching import Span, Text


def _whole(function: str, by: str) -> Text:
    """The function writes all or nothing."""
    return Text(
        f"def {function}(",
        f"from samegrad._keras.saving import {by} as _{by}\n\n\n@_{by}\ndef {function}(",
    )


SAVING: dict[str, list[Text | Span]] = {
    "keras.src.saving.saving_lib": [
        _whole("save_model", "whole_model"),
        _whole("save_weights_only", "whole_weights"),
    ],
    # The optimizer's state is read for the weights of all layers.
    "keras.src.legacy.saving.legacy_h5_format": [
        _whole("save_model_to_hdf5", "whole_hdf5"),
        Text(
            "model.optimizer.build(model._trainable_variables)",
            "model.optimizer.build(model.trainable_variables)",
        ),
    ],
    # The paths of older programs.
    "keras.src.saving.saving_api": [
        Text(
            "    is_keras_zip = str(filepath).endswith(",
            "    from samegrad._keras.older import saving as older\n\n"
            "    older.check_model_folder(filepath)\n"
            "    is_keras_zip = str(filepath).endswith(",
        ),
        Text(
            "    filepath_str = str(filepath)\n    if max_shard_size is None and not",
            "    from samegrad._keras.older import saving as older\n\n"
            '    save_format = kwargs.pop("save_format", None)\n'
            "    if older.saves_weights(\n"
            "        model, filepath, overwrite, save_format, max_shard_size\n    ):\n"
            "        return\n"
            "    filepath_str = str(filepath)\n    if max_shard_size is None and not",
        ),
        Text(
            '    if kwargs:\n        raise ValueError(f"Invalid keyword arguments: {kwargs}")\n',
            '    if kwargs:\n        raise ValueError(f"Invalid keyword arguments: {kwargs}")\n'
            "    from samegrad._keras.older import saving as older\n\n"
            "    status = older.loads_weights(model, filepath, by_name)\n"
            "    if status is not None:\n        return status\n",
        ),
    ],
    # "mse" in a file of older programs is the loss, by whatever name.
    "keras.src.saving.serialization_lib": [
        Text(
            "                        module_objects[config], config, fn_module_name\n",
            "                        module_objects[config],\n"
            "                        module_objects[config].__name__,\n"
            "                        fn_module_name,\n",
        ),
    ],
}
