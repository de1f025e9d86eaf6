"""What every layer rests on: errors, names and numbers as text, files written whole, versions of the software."""
