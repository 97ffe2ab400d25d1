"""Prepared datasets as trees of files: their content, checksums, manifests and mirrors."""
