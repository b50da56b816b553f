"""Recall on steps that the doctor was not tuned on, and the proof that their labels are true.

`pytest -s tests/doctor/test_held_out.py` prints the table.
"""

from __future__ import annotations

import hashlib
import json
import re
from pathlib import Path

import numpy as np
import pytest
from eval_case import FOLDER as EVALS
from eval_case import Case
from evaluate import judged, load, row_of
from held_out import Deal, all_cases
from held_out import toy as toy

from samegrad_doctor import CATALOGUE, Diagnosis, Layout, Outcome, Situation, StepError
from samegrad_doctor._layouts import take

FOLDER = EVALS / "held_out"
MANIFEST = FOLDER / "manifest.json"
CASES = all_cases()
RIGHT = [case for case in CASES if case.truth == "right"]
WRONG = [case for case in CASES if case.truth != "right"]
NAMES = ("verdict", "update", "report")
# What the doctor calls the kinds of the corpus.
KINDS = {
    "clip in every micro-batch": "clipped in every micro-batch",
    "clip before the reduction": "clipped before the replicas are joined",
    "clip before unscale": "before they are unscaled",
    "clip by the norm of a shard": "norm of a shard",
    "limit depends on the replicas": "limit of the gradient depends on the replicas",
    "a function of the share": "batch statistics are not synchronised|function of each share",
    "moments merged with equal weights": "merged with equal weights",
    "no gradient of the exchange": "no gradient passes",
    "same noise": "noise is equal on all replicas",
    "one number per replica": "one random factor per replica",
    "copies differ": "parameters differ",
    "part of the loss": "a part of the loss",
    "part of the parameters": "a part of the parameters",
    "statistics: of one replica": "statistics are (not synchronised|those of the first replica)",
    "statistics: equal weights": "statistics are merged with equal weights",
    "statistics: of local gradients": "moments are those of the replicas' own gradients",
    "term: divided by the replicas": "regularisation counts divided by the replicas",
    "term: once per micro-batch": "regularisation counts once in every micro-batch(?! of)",
    "term: once per replica": "regularisation counts once on every replica",
    "term: once per micro-batch of every replica": "once in every micro-batch of every replica",
    "term: divided by the micro-batches": "regularisation counts divided by the micro-batches",
}


def weights_of(case: Case) -> np.ndarray:
    given = case.options.get("weights")
    return np.ones(40) if given is None else np.asarray(given, dtype=float)


def some_layouts(case: Case, seed: int = 1) -> list[Layout]:
    """Splits that the doctor did not see, of other sizes."""
    rng = np.random.default_rng(seed)
    found = []
    for r in case.options.get("replicas", (2, 3)):
        for k in case.options.get("micro_batches", (1,)):
            order = iter(rng.permutation(40).tolist())
            parts = [
                [[next(order) for _ in range(int(rng.integers(2, 5)))] for _ in range(k)]
                for _ in range(r)
            ]
            found.append(Layout(tuple(tuple(map(tuple, share)) for share in parts)))
    return found


def of_truth(case: Case, item: Layout) -> np.ndarray:
    """What each example counts, by what it counts alone."""
    order = list(item.examples)
    place = {i: p for p, i in enumerate(order)}
    weights = weights_of(case)[order]
    parts = [[[place[i] for i in part] for part in share] for share in item.parts]
    alone = [float(np.ravel(case.truth(Deal([[[0]]], [w])))[0]) for w in weights]
    return np.asarray(case.truth(Deal(parts, weights))) / alone


def of_row(row, case: Case, item: Layout) -> np.ndarray:
    order = list(item.examples)
    place = {i: p for p, i in enumerate(order)}
    parts = tuple(tuple(tuple(place[i] for i in p) for p in share) for share in item.parts)
    weights = weights_of(case)[order]
    one = Layout((((0,),),))
    alone = [float(row.predict(Situation(one, np.array([w])))[0]) for w in weights]
    return row.predict(Situation(Layout(parts), weights)) / alone


def says(row, case: Case) -> bool:
    """Whether a row gives the true weights, also on splits that were not tried."""
    with np.errstate(all="ignore"):
        for item in some_layouts(case):
            wanted, found = of_truth(case, item), of_row(row, case, item)
            if not np.allclose(found, wanted, rtol=1e-2, atol=1e-9):
                return False
    return True


def detected(case: Case, found: Diagnosis | StepError) -> bool:
    if isinstance(found, StepError):
        return False
    if case.where == "report":
        return bool(found.reported_loss_issue)
    if case.where == "warning":
        return bool(re.search(KINDS[case.truth], str(found)))
    return not found.correct


def named(case: Case, found: Diagnosis | StepError) -> bool:
    if not detected(case, found):
        return False
    if case.where == "warning":
        return True
    if case.where == "report":
        row = getattr(found, "reported_loss_cause", None)
        if row is None:
            named_rows = [r for r in CATALOGUE if r.name in found.reported_loss_issue]
            row = max(named_rows, key=lambda r: len(r.name), default=None)
        return row is not None and says(row, case)
    rows = [row for row in (found.cause, *found.alternatives) if row is not None][:3]
    if callable(case.truth):
        return any(says(row, case) for row in rows)
    return any(re.search(KINDS[case.truth], row.name) for row in rows)


def test_the_corpus_is_frozen() -> None:
    told = json.loads(MANIFEST.read_text())
    files = {path.name: _hash(path) for path in sorted(FOLDER.glob("*.py"))}
    assert files == told["files"]
    assert len(WRONG) == told["wrong"] >= 60 and len(RIGHT) == told["right"]


def _hash(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


OTHERWISE = ("held_out.exchange", "held_out.terms")
LINEAR = [c for c in CASES if callable(c.truth) and c.make()[0].__module__ not in OTHERWISE]
SUMS = ("stanford-cs336/assignment5-alignment#10", "intel/ipex-llm#2079")  # a constant divides


@pytest.mark.parametrize("case", LINEAR, ids=lambda case: case.source)
def test_the_label_is_true(case: Case) -> None:
    """By the gradients (or losses) of the examples themselves."""

    def values(i: int) -> np.ndarray:
        one = take(case.make()[1], [i])
        if case.where == "report":
            own = toy.token_losses(one) if "labels" in one else toy.losses(one)
            return np.array([own.mean()])
        if "labels" in one:
            return toy.token_sum(one) / toy.n_tokens(one)
        return toy.grad_sum(one)

    ratios = []
    for item in some_layouts(case, seed=9):
        order = list(item.examples)
        alone = np.stack([_told(case, Layout((((i,),),))) / values(i) for i in order])
        scale = np.median(alone, axis=1)
        wanted = of_truth(case, item)
        if case.source in SUMS:
            wanted = wanted * len(order) if case.make()[1] is toy.IMAGES else (
                wanted / weights_of(case)[order] * weights_of(case)[order].sum()
            )  # fmt: skip
        said = (wanted * scale) @ np.stack([values(i) for i in order])
        ratios.append(_told(case, item) / said)
    np.testing.assert_allclose(np.concatenate(ratios), ratios[0][0], rtol=1e-6)


def _told(case: Case, item: Layout) -> np.ndarray:
    several = any(k > 1 for k in case.options.get("micro_batches", (1,)))
    shares = [[take(case.make()[1], part) for part in share] for share in item.parts]
    given = shares if several else [share[0] for share in shares]
    result = case.make()[0](given)
    if case.where == "report":
        return np.array([result.loss])
    update = result.update if isinstance(result, Outcome) else result
    leaves = update.values() if isinstance(update, dict) else update
    if isinstance(update, (list, dict)):
        return np.concatenate([np.ravel(leaf) for leaf in leaves])
    return np.asarray(update)


def verdict_on(case: Case, found: Diagnosis | StepError) -> str:
    """A word for the table."""
    if isinstance(found, StepError):
        return "REFUSED"
    if case.truth == "right":
        return "ACCUSED" if not found.correct or found.reported_loss_issue else "right"
    return "named" if named(case, found) else "detected" if detected(case, found) else "MISSED"


def table() -> dict[str, int]:
    """Prints a line per case, and counts the verdicts."""
    counts: dict[str, int] = {}
    differ, record = [], load()
    for index, case in enumerate(CASES):
        found = judged(case)
        told, old = row_of(found), record[f"held_out/{index}/{case.source}"]
        differ += [case.source] if any(told.get(k) != old.get(k) for k in NAMES) else []
        word = verdict_on(case, found)
        counts[word] = counts.get(word, 0) + 1
        refused = isinstance(found, StepError)
        said = (
            str(found)
            if refused
            else found.reported_loss_issue or (found.cause and found.cause.name)
        )
        print(f"{word:8} {case.source} | {case.what}\n         -> {str(said)[:150]}")
    counts["not as recorded"] = len(differ)
    print(counts, f"of {len(WRONG)} wrong and {len(RIGHT)} right", differ)
    return counts


def test_recall_on_steps_that_no_rule_was_tuned_on() -> None:
    counts = table()
    assert not counts["not as recorded"], counts
    assert counts["named"] >= 0.95 * len(WRONG), counts
    assert counts["named"] + counts.get("detected", 0) >= 0.99 * len(WRONG), counts
    assert counts["right"] == len(RIGHT) and "REFUSED" not in counts, counts
