"""The sources of raw data: Kaggle, other publishers, or a folder or zip of the operator."""
