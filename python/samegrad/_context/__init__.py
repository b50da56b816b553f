"""Execution context: strategy, replica and trace; user code; counted numbers."""
