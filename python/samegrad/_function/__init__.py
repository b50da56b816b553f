"""Python functions as compiled steps: traces, programs, loops over rows."""
