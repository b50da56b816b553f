"""What public names have in common: errors in terms of the call, and words for missing names."""
