"""What gives one number per sample, one kind each."""
