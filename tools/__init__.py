"""What maintainers run: it makes documents and pictures from the program itself and is not installed."""
