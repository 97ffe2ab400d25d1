"""Files of certain formats: JSON, numpy arrays, TFRecord; masks as run lengths."""
