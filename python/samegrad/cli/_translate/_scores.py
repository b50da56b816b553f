"""Metrics of translations: perplexity, accuracy of tokens, BLEU."""

from __future__ import annotations

import math
from collections.abc import Sequence

from samegrad.cli._errors import CommandError


def perplexity(cross_entropy: float, tokens: float) -> float:
    """exp(mean cross-entropy), among how many tokens a model wavers; not a number without any.

    Args:
        cross_entropy: Nats, without smoothing, summed over the tokens.
        tokens: How many.

    Example:
        >>> round(perplexity(3 * math.log(5.0), 3), 6)
        5.0
    """
    if not tokens:
        return math.nan
    mean = cross_entropy / tokens
    return math.exp(mean) if mean < math.log(1e300) else math.inf


def token_accuracy(hits: float, tokens: float) -> float:
    """The share of tokens that a model puts first; not a number without any.

    Example:
        >>> token_accuracy(3, 4)
        0.75
    """
    return hits / tokens if tokens else math.nan


def bleu(translations: Sequence[str], references: Sequence[str]) -> float:
    """BLEU from 0 to 100 (Papineni et al., 2002), as sacrebleu computes it (Post, 2018).

    Args:
        translations: One for each sentence, without special tokens.
        references: As many, the wanted ones.

    Raises:
        CommandError: sacrebleu is missing.
        ValueError: There are not as many of both, or none.
    """
    if len(translations) != len(references) or not translations:
        raise ValueError(
            "[bleu] every sentence needs a translation and a reference, and there must be one: got "
            f"{len(translations)} and {len(references)}."
        )
    try:
        import sacrebleu
    except ImportError as error:
        raise CommandError(
            "[translate] BLEU needs sacrebleu: it is not installed. Run "
            "`pip install 'samegrad[translate]'`."
        ) from error
    return float(sacrebleu.corpus_bleu(list(translations), [list(references)]).score)
