"""The helpers of MLE-bench's own competitions."""
