"""Record TensorFlow's signatures, and what calls of its functions give.

    python record_tensorflow_signatures.py   # with TensorFlow installed

test_signatures.py compares with the file that this writes.
"""

import json
from pathlib import Path

from keyword_programs import PROGRAMS
from manner_programs import answer
from signatures import signatures
from value_calls import calls, value_of

HOME = Path(__file__).with_name("tensorflow_signatures.json")


def main() -> None:
    """Write them, sorted by name."""
    import tensorflow as tf

    known = signatures(tf, "tensorflow._api.v2")
    values = {f"{name} {kind}": value_of(tf, name, kind, n) for name, kind, n in calls(known)}
    found = {
        "answers": {name: answer(tf, program) for name, program in PROGRAMS.items()},
        "signatures": known,
        "values": {call: value for call, value in values.items() if value is not None},
    }
    parts = (
        f"{json.dumps(part)}: {{\n"
        + ",\n".join(f"{json.dumps(n)}: {json.dumps(v)}" for n, v in sorted(values.items()))
        + "\n}"
        for part, values in found.items()
    )
    HOME.write_text("{\n" + ",\n".join(parts) + "\n}\n", encoding="utf-8")


if __name__ == "__main__":
    main()
