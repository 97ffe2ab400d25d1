"""Pieces that several screens share; they draw what they are given and ask nobody."""
