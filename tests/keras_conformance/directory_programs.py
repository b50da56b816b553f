"""Folders as datasets and the vocabularies of layers, with TensorFlow and with samegrad alike."""

import json
import pathlib
import wave

import numpy as np

FILES = pathlib.Path(__file__).parents[1] / "unit" / "image" / "image_files.json"


def write_folders(root):
    """Two classes of texts, two of images and two of sounds."""
    import base64

    stored = json.loads(FILES.read_text())
    for name in ("pos", "neg"):
        for number in range(4):
            path = root / "text" / name / f"{number}.txt"
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(f"{name} text number {number} ä " + "word " * number, encoding="utf-8")
    for name in ("cat", "dog"):
        for number, file in enumerate(["rgb.png", "grey.png", "alpha.png", "palette.png"]):
            path = root / "images" / name / f"{number}.png"
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(base64.b64decode(stored[file]))

    for name in ("bark", "mew"):
        for number in range(3):
            path = root / "sounds" / name / f"{number}.wav"
            path.parent.mkdir(parents=True, exist_ok=True)
            samples = np.arange(2 * (5 + number), dtype="<i2") * 1000 * (number - 1)
            with wave.open(str(path), "wb") as file:
                file.setparams((2, 2, 8000, 0, "NONE", ""))
                file.writeframes(samples.tobytes())


def _texts(**more):
    more = {"batch_size": 3, "shuffle": False, **more}
    return lambda tf, root: tf.keras.utils.text_dataset_from_directory(str(root / "text"), **more)


def _images(**more):
    more = {"batch_size": 3, "shuffle": False, "image_size": (12, 9), **more}
    return lambda tf, root: tf.keras.utils.image_dataset_from_directory(
        str(root / "images"), **more
    )


def _sounds(**more):
    more = {"batch_size": 4, "shuffle": False, **more}
    return lambda tf, root: tf.keras.utils.audio_dataset_from_directory(
        str(root / "sounds"), **more
    )


DATASETS = {
    "sounds": _sounds(),
    "sounds cut": _sounds(output_sequence_length=6, label_mode="categorical"),
    "sounds mixed": _sounds(shuffle=True, seed=3, batch_size=None),
    "sounds alone": _sounds(label_mode=None),
    "texts": _texts(),
    "texts mixed": _texts(shuffle=True, seed=3, batch_size=None),
    "texts cut": _texts(max_length=7, label_mode="categorical"),
    "texts part": _texts(validation_split=0.25, subset="validation", seed=1),
    "texts alone": _texts(label_mode=None, batch_size=None),
    "images": _images(),
    "images part mixed": _images(
        validation_split=0.5, subset="training", seed=1, shuffle=True, batch_size=None
    ),
    "images binary": _images(label_mode="binary"),
    "images alone": _images(label_mode=None),
    "images grey": _images(color_mode="grayscale"),
    "images with opacity": _images(color_mode="rgba"),
    "images cut": _images(crop_to_aspect_ratio=True),
    "images framed": _images(pad_to_aspect_ratio=True),
    "images nearest": _images(interpolation="nearest"),
    "images bicubic": _images(interpolation="bicubic"),
    "images one": _images(batch_size=None),
}


def _vectorized(**more):
    def program(tf, data):
        layer = tf.keras.layers.TextVectorization(**more)
        layer.adapt(data)
        return layer

    return program, ["pos text word", "number zzz"]


def _looked_up(kind, values, asked, **more):
    def program(tf, data):
        layer = getattr(tf.keras.layers, kind)(**more)
        layer.adapt(tf.data.Dataset.from_tensor_slices(values).batch(2))
        return layer

    return program, asked


def _split(left_size, *, batch=0, pairs=False, lists=False):
    def program(tf, root):
        values = np.arange(20).reshape(10, 2)
        data = [values, values[:, 0]]
        if not lists:
            data = tf.data.Dataset.from_tensor_slices(tuple(data) if pairs else values)
        data = data.batch(batch) if batch else data
        left, right = tf.keras.utils.split_dataset(data, left_size)
        end = tf.data.Dataset.from_tensors(np.array([-1]))
        end = tf.data.Dataset.zip((end, end)) if pairs or lists else end
        return [*left, *end, *right]

    return program


DATASETS |= {
    "split": _split(0.3),
    "split of batches": _split(0.3, batch=2),
    "split of batches of pairs": _split(4, batch=3, pairs=True),
    "split of lists": _split(2, lists=True),
}

# Layers that have seen data, and what is asked of them.
LAYERS = {
    "words": _vectorized(),
    "runs of words": _vectorized(ngrams=2),
    "tf_idf": _vectorized(output_mode="tf_idf"),
    "multi_hot": _vectorized(output_mode="multi_hot", max_tokens=6),
    "count": _vectorized(output_mode="count"),
    "cut": _vectorized(output_sequence_length=4, standardize="lower"),
    "letters": _vectorized(split="character", standardize="strip_punctuation"),
    "strings": _looked_up("StringLookup", ["b", "a", "b", "c"], ["a", "zz", "q"]),
    "strings of two places": _looked_up(
        "StringLookup", ["b", "a", "b", "c"], ["a", "zz", "q"], num_oov_indices=2
    ),
    "strings as vectors": _looked_up(
        "StringLookup", ["b", "a", "b"], [["a", "b"], ["b", "b"]], output_mode="count"
    ),
    "numbers": _looked_up("IntegerLookup", [5, 7, 5, 9], [5, 1]),
    "numbers with mask": _looked_up("IntegerLookup", [5, 7, 5, 0], [5, 1, 0], mask_token=0),
}


def elements(dataset):
    """The components of all elements: lists of numbers, text as its Latin letters."""
    return [
        [part(leaf) for leaf in (element if isinstance(element, tuple) else (element,))]
        for element in dataset
    ]


def part(leaf):
    array = np.asarray(leaf.numpy())
    if array.dtype.kind in "OS":
        return {"text": [value.decode("latin-1") for value in array.astype(object).ravel()]}
    rounded = np.round(array.astype(np.float64), 3).ravel().tolist()
    return {"shape": list(array.shape), "dtype": array.dtype.name, "values": rounded}


def of_layer(tf, name, root):
    """The vocabulary of a layer, what it gives, and its configuration."""
    program, asked = LAYERS[name]
    texts = _texts(label_mode=None)(tf, root)
    layer = program(tf, texts)
    given = layer(tf.constant(asked))
    words = [str(word) for word in layer.get_vocabulary()]
    return {"words": words, "given": part(given), "config": layer.get_config()}
