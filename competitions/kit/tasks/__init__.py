"""What whole tasks of one kind share: graders of the common kinds, annotated images, spoken tokens."""
