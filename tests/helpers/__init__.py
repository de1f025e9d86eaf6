"""What tests share: inputs that they make, definitions that they compare with, and ways to run and look."""
