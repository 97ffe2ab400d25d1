"""Tools for maintainers that generate documents and pictures from the program; they are not installed."""
