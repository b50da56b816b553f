"""Records what SciPy makes of special_cases.py: run it with a Python that has SciPy."""

from __future__ import annotations

import json
from pathlib import Path

import scipy
from scipy import special
from special_cases import CASES, encoded

found = {}
for name, (theirs, operands, _) in CASES.items():
    found[name] = encoded(getattr(special, theirs)(*operands))
text = json.dumps({"scipy": scipy.__version__, "cases": found}, indent=0)
Path(__file__).with_name("scipy_special.json").write_text(text + "\n", encoding="utf-8")
