"""Record how far TensorFlow reads ahead: `python record_tensorflow_read_ahead.py`.

Run it where TensorFlow is installed; test_read_ahead.py compares with the file that it writes.
"""

import json
from pathlib import Path

from read_ahead_programs import PROGRAMS, read_ahead

HOME = Path(__file__).with_name("tensorflow_read_ahead.json")


def main() -> None:
    """Write the counts of each program, the most of three runs."""
    import tensorflow as tf

    runs = [{name: read_ahead(tf, p) for name, p in PROGRAMS.items()} for _ in range(3)]
    most = {n: [max(c) for c in zip(*(run[n] for run in runs), strict=True)] for n in PROGRAMS}
    lines = ",\n".join(f"{json.dumps(n)}: {json.dumps(counts)}" for n, counts in most.items())
    HOME.write_text(f"{{\n{lines}\n}}\n", encoding="utf-8")


if __name__ == "__main__":
    main()
