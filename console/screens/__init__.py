"""The screens, one module each, with the lines and columns that it draws."""
