"""`tf.version`: which samegrad this is."""

from samegrad import _core
from samegrad._surface.boundary import guard

VERSION = _core.__version__
COMPILER_VERSION = f"samegrad {VERSION}"
GIT_VERSION = VERSION

__all__ = ["COMPILER_VERSION", "GIT_VERSION", "VERSION"]
guard(__name__)
