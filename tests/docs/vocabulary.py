"""Define the words that the gate of style measures: refused phrases, and verbs."""

import re

REFUSED = {
    r"whole numbers?\b": "integer",
    r"(?<!\bby )\bno number\b": "NaN, not a number",
    r"rows of different lengths": "ragged tensor",
    r"few values in a large tensor": "sparse tensor",
    r"numbers? of (a |the )?letters?\b|\bthe letter's number": "code point",
    r"must be (a )?texts?\b": "must be a string",
    r"from tap to tap": "dilation rate",
    r"bits of (one|a single) (device|replica)": "bitwise identical to single-device training",
    r"orders? of additions?\b": "reduction order",
    r"\badded up\b": "summed",
    r"walk(s|ed|ing)? backwards": "backward pass",
    r"un(even|equal) shares?\b": "unequal per-replica batches",
    r"as many times (too )?(large|small|big)": "by a factor of",
    r"(?<!here )\b(is|are) no (?!longer|more than|less than|fewer)": "is not a",
    r"(?<!here )\b(is|are) none\b(?=[.,;:)]|$)": "there is no ...",
    r"(?<!not )\btoo\.(?=\s|$)": "also",
    r"\bbeside[.;]": "compared with",
    r"\bas ever\b": "as before, as usual",
    r"\bof which the\b|\bof which examples\b": "whose",
    r"\b(value|number|array|function|step|call|node|file|thread|rank|process)s? who\b": "that",
    r"(?<!must )\blies?\b": "is",
    r"\bstands? (at|in|on|there|where|beside|by|before|after|behind|under)\b": "is",
    r"\bblind trials?\b|\bblind_trial": "evaluation set",
    r"\baccuse[sd]?\b": "false positive",
    r"\bmade again\b": "rematerialized",
    r"\bas it is said\b|\bit is said\b": "...",
    r"\bdealt out\b|\bshared out\b": "distributed",
    r"\bloss scaling (of|over|across) replicas": "loss normalization",
}
"""Refused phrase (regular expression) -> the field's term."""

REPORTED = {
    r"\bshares?\b": "per-replica batch",
    r"\btexts?\b": "string",
    r"\bplaces?\b": "index, position",
    r"\brows?\b": "batch axis, element: say which",
    r"\bparts?\b": "local value",
    r"\bkept\b|\bkeeping\b": "cached",
    r"\brefuse[sd]?\b": "reject, raise",
    r"\bcomes?\b": "follows, arrives",
    r";\s": "two sentences",
}
"""Words with lawful uses: counted by the command, never refused."""

CLAUSE_WORDS = frozenset(
    re.findall(
        r"\w+",
        "What Whatever Which Whether Of Who Whose Whom Where Wherever As How That Why So",
    )
)
"""First words of a docstring that describes its subject by a clause."""

VERBS = frozenset(
    re.findall(
        r"\w+",
        """
    abort accept accumulate acquire adapt add adjust advance aggregate allocate allow allreduce
    append apply approximate ask assemble assert assign attach average await backpropagate balance
    batch begin bind block broadcast build cache calculate call cancel capture cast center change
    check choose clean clear clip clone close collect combine commit compare compile complete
    compute concatenate configure conjugate construct consume convert convolve copy correct count
    create crop cut deal declare decode decompose decorate decrease decrement define delete
    depthwise dequeue derive describe deserialize detect determine diagnose disable discard dispatch
    distribute divide do download draw drop dump duplicate embed emit empty enable encode end ensure
    enter enumerate estimate evaluate exchange exclude execute exit expand explain export extend
    extract factorize fail feed fetch fill filter find finish fit flag flatten flip floor flush fold
    force forget format forward free gather generate get give group guess halve handle hash hold
    ignore implement import include increase increment index infer initialize insert inspect install
    instantiate interleave interpolate interpret invert iterate join keep label launch leave left
    let limit list load locate lock log look lower make map mark mask match maximize measure merge
    minimize mix modify move multiply name negate normalize note notify obtain offset open order
    overwrite pack pad pair parse partition pass permute pick place plot pool pop predict prefetch
    prepare prepend preprocess print process produce prune publish pull push put quantize queue
    raise randomize read rebuild receive recompute reconstruct record recover reduce refresh refuse
    register reinterpret reject release reload remember remove rename reorder repeat replace replay
    report request require rescale reset reshape resize resolve restart restore restrict retrieve
    return reverse rewrite right roll rotate round run sample save scale scan scatter search seed
    segment select send separate serialize set shard share shift show shuffle shut sign skip slice
    smooth solve sort split square squeeze stack standardize start state stop store stream strip
    subtract sum suppress swap switch synchronize tabulate take tell test throw tile time trace
    track train transfer transform translate transpose treat trim truncate try turn undo unpack
    unstack update upsample use validate verify view visit wait walk warn watch weight widen wrap
    write yield zero
    """,
    )
)
"""Imperative verbs that begin docstrings, in lower case."""


def is_verb(word: str) -> bool:
    """Tell whether a docstring's first word is an imperative verb."""
    return re.sub(r"\W", "", word).lower() in VERBS and not word.endswith(":")


def is_clause(word: str) -> bool:
    """Tell whether a docstring's first word opens a relative or indirect clause."""
    return re.sub(r"\W", "", word) in CLAUSE_WORDS
