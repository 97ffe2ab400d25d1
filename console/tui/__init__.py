"""What screens are made of: kinds of screens, widgets, keys, drawing, themes, and the terminal below them."""
