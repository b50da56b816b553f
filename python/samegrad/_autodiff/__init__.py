"""Variables, tapes, derivatives, and the check of how losses are scaled."""
