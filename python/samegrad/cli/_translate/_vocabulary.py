"""Words in pieces: a vocabulary that is learnt from the training data (sentencepiece)."""

from __future__ import annotations

import io
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from samegrad._base.shown import shown
from samegrad.cli._errors import CommandError
from samegrad.cli._records import explained
from samegrad.cli._translate._blocks import PAD
from samegrad.cli._translate._pairs import WHO
from samegrad.train import _files

UNKNOWN, START, END = 1, 2, 3
Tokens = npt.NDArray[np.int32]


class Vocabulary:
    """Pieces of words and their numbers; one for both languages, so that names are copied.

    Token 0 is padding, 1 is unknown, 2 starts a sentence and 3 ends it.

    Args:
        content: The bytes of a model of sentencepiece.

    Raises:
        CommandError: sentencepiece is missing, or the bytes are not a model with these tokens.

    Example:
        >>> words = Vocabulary.learn(["to be or not to be"] * 9, 24)  # doctest: +SKIP
        >>> words.decode(words.encode("to be"))  # doctest: +SKIP
        'to be'
    """

    def __init__(self, content: bytes) -> None:
        library = _library()
        self.content = content
        self._model = library.SentencePieceProcessor()
        try:
            self._model.LoadFromSerializedProto(content)
            model = self._model
            special = (model.pad_id(), model.unk_id(), model.bos_id(), model.eos_id())
        except RuntimeError:
            special = None
        if special != (PAD, UNKNOWN, START, END):
            raise CommandError(
                f"[{WHO}] a vocabulary must be one that this command has saved: got "
                f"{len(content)} bytes of something else. Begin anew with --overwrite."
            )

    @classmethod
    def learn(cls, sentences: Iterable[str], size: int) -> Vocabulary:
        """Learns pieces from sentences, by merging pairs (Sennrich et al., 2016).

        The same sentences give the same pieces.

        Args:
            sentences: Those to train on, in both languages.
            size: The number of pieces, special ones included.

        Raises:
            CommandError: The size does not fit the sentences.
        """
        library, model = _library(), io.BytesIO()
        try:
            library.SentencePieceTrainer.train(
                sentence_iterator=iter(sentences), model_writer=model, vocab_size=size,
                model_type="bpe", character_coverage=1.0, normalization_rule_name="identity",
                pad_id=PAD, unk_id=UNKNOWN, bos_id=START, eos_id=END, num_threads=1,
                max_sentence_length=1 << 20, minloglevel=3,
            )  # fmt: skip
        except RuntimeError as error:
            raise CommandError(
                f"[{WHO}] --vocabulary must fit the data, between the number of their characters "
                f"and that of their pieces: got {size}, and sentencepiece says "
                f"{shown(str(error).splitlines()[0] if str(error) else 'no', 200)}."
            ) from error
        return cls(model.getvalue())

    @classmethod
    def load(cls, path: Path) -> Vocabulary:
        """The vocabulary of an earlier run.

        Raises:
            CommandError: It is missing or damaged.
            OSError: It cannot be read.
        """
        if not path.is_file():
            raise CommandError(
                f"[{WHO}] --resume needs the vocabulary of the run: got no file {path}. Give the "
                "--checkpoint-dir of the run, or begin anew with --overwrite."
            )
        with explained(WHO, "read", path):
            content = path.read_bytes()
        return cls(content)

    def save(self, path: Path) -> None:
        """Writes it into a file, whole or not at all."""
        with explained(WHO, "write", path):
            _files.replace_file(path, self.content)

    def __len__(self) -> int:
        return int(self._model.get_piece_size())

    def encode(self, sentence: str) -> Tokens:
        """The tokens of a sentence, without special ones."""
        return np.array(self._model.encode(sentence), np.int32)

    def decode(self, tokens: Sequence[int] | Tokens) -> str:
        """The sentence of tokens, up to the first END or padding."""
        kept = []
        for token in map(int, tokens):
            if token in (END, PAD):
                break
            kept.append(token)
        return str(self._model.decode(kept))


def _library() -> Any:
    try:
        import sentencepiece
    except ImportError as error:
        raise CommandError(
            f"[{WHO}] a vocabulary needs sentencepiece: it is not installed. Run "
            "`pip install 'samegrad[translate]'`."
        ) from error
    return sentencepiece
