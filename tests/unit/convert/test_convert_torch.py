"""Weights of PyTorch in models of Keras, and back: outputs agree, and no bit is lost."""

from __future__ import annotations

from pathlib import Path

import convert_keras_models as ours
import numpy as np
import pytest
from convert_cases import SHAPES, given_input, images, sentences

import samegrad as tf

HERE = Path(__file__).parent
LAYERS = tf.convert.load(HERE / "torch_layers.safetensors")
OUTPUTS = tf.convert.load(HERE / "torch_outputs.safetensors")
RESNET = tf.convert.load(HERE / "torch_resnet50.safetensors")
BERT = tf.convert.load(HERE / "torch_bert.safetensors")


@pytest.fixture(scope="module")
def theirs():
    pytest.importorskip("torch", reason="PyTorch is not installed")
    import convert_torch_models

    return convert_torch_models


def recorded(name):
    """Return the recorded weights of a layer."""
    return {
        key.removeprefix(f"{name}."): value
        for key, value in LAYERS.items()
        if key.startswith(f"{name}.")
    }


def close(found, expected):
    np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-5)


def same_bits(found, expected):
    assert found.keys() == expected.keys()
    for name, value in expected.items():
        assert found[name].dtype == value.dtype and found[name].shape == value.shape, name
        assert found[name].tobytes() == value.tobytes(), name


def without_counters(weights):
    return {name: v for name, v in weights.items() if not name.endswith("num_batches_tracked")}


def weights_of(model):
    return [variable.numpy() for variable in model.weights]


@pytest.mark.parametrize("name", SHAPES)
def test_layer_with_weights_of_torch_gives_its_outputs(name):
    model, names = ours.layer(name)
    tf.convert.from_torch(model, recorded(name), names)
    close(model(given_input(name), training=False).numpy(), OUTPUTS[name])


@pytest.mark.parametrize("name", SHAPES)
def test_weights_of_a_layer_return_bit_by_bit(name):
    model, names = ours.layer(name)
    rng = np.random.default_rng(1)
    for variable in model.weights:
        value = rng.normal(size=variable.shape)
        value.flat[0] = -0.0
        variable.assign(value)
    before = weights_of(model)
    weights = tf.convert.to_torch(model, names)
    for variable in model.weights:
        variable.assign(tf.zeros(variable.shape))
    tf.convert.from_torch(model, weights, names)
    assert [one.tobytes() for one in before] == [one.tobytes() for one in weights_of(model)]
    assert {key: a.shape for key, a in weights.items()} == {
        key: a.shape for key, a in recorded(name).items()
    }


@pytest.mark.parametrize("name", SHAPES)
def test_layer_gives_its_weights_to_torch(theirs, name):
    import torch

    model, names = ours.layer(name)
    weights = tf.convert.to_torch(model, names)
    module = theirs.layer(name, seed=5)
    module.load_state_dict({key: torch.from_numpy(a) for key, a in weights.items()})
    close(
        theirs.result(name, module, given_input(name)),
        model(given_input(name), training=False).numpy(),
    )


@pytest.mark.parametrize("name", SHAPES)
def test_layer_takes_the_state_of_a_module(theirs, name):
    model, names = ours.layer(name)
    module = theirs.layer(name, seed=11)
    tf.convert.from_torch(model, module.state_dict(), names)
    close(
        model(given_input(name), training=False).numpy(),
        theirs.result(name, module, given_input(name)),
    )


def test_resnet_with_weights_of_torch_gives_its_outputs():
    assert len(RESNET) == 320  # as torchvision's
    model = ours.resnet()
    tf.convert.from_torch(model, HERE / "torch_resnet50.safetensors", ours.RESNET_NAMES)
    close(model(images(), training=False).numpy(), OUTPUTS["resnet50"])
    back = tf.convert.to_torch(model, ours.RESNET_NAMES)
    assert back.keys() == RESNET.keys()
    same_bits(without_counters(back), without_counters(RESNET))


def test_map_of_resnet_names_the_layers_of_keras_applications():
    model = tf.keras.applications.ResNet50(weights=None, input_shape=(32, 32, 3))
    names = tf.convert.to_torch(model, ours.RESNET_NAMES).keys()
    biases = {name for name in names if name.endswith(".bias")} - RESNET.keys()
    assert names - biases == RESNET.keys() and len(biases) == 53  # of convolutions


def test_resnet_agrees_with_torch(theirs):
    module = theirs.resnet(seed=3)
    model = ours.resnet()
    tf.convert.from_torch(model, module.state_dict(), ours.RESNET_NAMES)
    close(model(images(), training=False).numpy(), theirs.resnet_outputs(module, images()))


@pytest.mark.parametrize("replicas", [None, 2])
def test_bert_with_weights_of_hugging_face_gives_its_outputs(replicas):
    with tf.distribute.MirroredStrategy(replicas=replicas).scope() if replicas else tf.init_scope():
        model = ours.bert(sentences())
        tf.convert.from_torch(model, HERE / "torch_bert.safetensors", ours.BERT_NAMES)
    hidden, pooled = model(sentences(), training=False)
    close(hidden.numpy(), OUTPUTS["bert"])
    close(pooled.numpy(), OUTPUTS["bert pooled"])
    same_bits(tf.convert.to_torch(model, ours.BERT_NAMES), BERT)


def test_bert_agrees_with_torch(theirs):
    module = theirs.bert(seed=3)
    model = ours.bert(sentences())
    tf.convert.from_torch(model, module.state_dict(), ours.BERT_NAMES)
    found, expected = model(sentences(), training=False), theirs.bert_outputs(module, *sentences())
    for one, other in zip(found, expected, strict=True):
        close(one.numpy(), other)


def test_bert_of_a_published_checkpoint_loads_without_its_heads():
    """The published file has a prefix, older names of LayerNorm, and heads of the pre-training."""
    older = {"LayerNorm.weight": "LayerNorm.gamma", "LayerNorm.bias": "LayerNorm.beta"}
    published = {"cls.predictions.bias": np.zeros(60, np.float32)}
    for name, value in BERT.items():
        module, dot, parameter = name.rpartition("LayerNorm.")
        published[f"bert.{module}{older.get(dot + parameter, dot + parameter)}"] = value
    names = {
        **{f"{key}.weight": f"bert.{value}.gamma" for key, value in ours.BERT_NAMES.items()
           if value.endswith("LayerNorm")},
        **{f"{key}.bias": f"bert.{value}.beta" for key, value in ours.BERT_NAMES.items()
           if value.endswith("LayerNorm")},
        **{key: f"bert.{value}" for key, value in ours.BERT_NAMES.items()},
        "embeddings": "bert.embeddings",
    }  # fmt: skip
    model = ours.bert(sentences())
    tf.convert.from_torch(model, published, names, ignore=["cls"])
    close(model(sentences(), training=False)[0].numpy(), OUTPUTS["bert"])


def test_converted_model_gives_the_same_bits_on_replicas():
    parts = [np.concatenate([x, x[:1]]) for x in sentences()]
    found = []
    for replicas in (1, 2):
        strategy = tf.distribute.MirroredStrategy(replicas=replicas)
        with strategy.scope():
            model = ours.bert(sentences())
        tf.convert.from_torch(model, BERT, ours.BERT_NAMES)
        data = tf.data.Dataset.from_tensor_slices(tuple(parts)).batch(4)
        (batch,) = strategy.experimental_distribute_dataset(data)
        hidden = strategy.run(lambda x, m=model: m(x, training=False)[0], args=(batch,))
        found.append(strategy.gather(hidden, axis=0).numpy())
    np.testing.assert_array_equal(*found)


def test_dense_after_flatten_takes_the_channels_first_of_torch(theirs):
    import torch

    layers = tf.keras.layers
    module = torch.nn.Sequential(
        torch.nn.Conv2d(4, 3, 2), torch.nn.Flatten(), torch.nn.Linear(36, 2)
    )
    model = tf.keras.Sequential(
        [
            layers.Input((4, 5, 4)),
            layers.Conv2D(3, 2),
            layers.Permute((3, 1, 2)),
            layers.Flatten(),
            layers.Dense(2),
        ]
    )
    tf.convert.from_torch(model, module.state_dict(), {"conv2d": "0", "dense": "2"})
    x = np.random.default_rng(0).normal(size=(2, 4, 5, 4)).astype(np.float32)
    with torch.no_grad():
        expected = module(torch.from_numpy(x).movedim(-1, 1)).numpy()
    close(model(x).numpy(), expected)
