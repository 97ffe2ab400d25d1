"""Prepared datasets as trees of files: what lies in them, their sums and manifests, and mirrors of them."""
