"""Functions of version 1 that eager programs use: `import samegrad.compat.v1 as tf`.

What version 1 has not itself is samegrad's, with the order of arguments of version 1. Graphs,
sessions that run them, placeholders and collections are left out: the error says what to write.
"""

import sys

from samegrad.compat import _batch_norm as _batch_norm
from samegrad.compat import _functions as _functions
from samegrad.compat import _ragged_values as _ragged_values
from samegrad.compat import _variables as _variables
from samegrad.compat._namespace import Namespace as _Namespace

sys.modules[__name__].__class__ = _Namespace
del sys
