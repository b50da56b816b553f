"""tf.keras: Keras 3 on samegrad's engine.

Everything of Keras's public API is here, and what older programs call it; what samegrad adds is in
`samegrad._keras.additions`.

Example:
    >>> from samegrad.keras.layers import Dense
    >>> Dense(2, name="head").name
    'head'
"""

from samegrad._keras import namespaces as _namespaces

_namespaces.fill(__name__)
