"""A differential fuzz of graders: the same damaged submissions are graded by MLE-bench and by this project."""
