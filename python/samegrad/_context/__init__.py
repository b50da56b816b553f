"""Where the program is: strategy, replica, trace; whose code runs, and what its numbers count."""
