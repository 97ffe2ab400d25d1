"""Code shared by whole tasks of one kind: common graders, annotated images, spoken tokens."""
