"""What every layer uses: errors, names and numbers as text, atomic writes, digests, versions of the software."""
