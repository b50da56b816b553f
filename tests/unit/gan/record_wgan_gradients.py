"""Records what TensorFlow or PyTorch finds, for environments that have neither.

    python record_wgan_gradients.py tensorflow|torch

Writes wgan_gradients_NAME.json beside this file.
"""

from __future__ import annotations

import importlib
import json
import sys
from pathlib import Path

import wgan_programs

if __name__ == "__main__":
    name = sys.argv[1]
    found = {"tensorflow": wgan_programs.by_tensorflow, "torch": wgan_programs.by_torch}[name]()
    version = importlib.import_module(name).__version__
    record = {"version": version, "gradients": [gradient.tolist() for gradient in found]}
    Path(__file__).with_name(f"wgan_gradients_{name}.json").write_text(json.dumps(record) + "\n")
