"""The surface of the public API: errors in terms of the call, and hints for missing names."""
