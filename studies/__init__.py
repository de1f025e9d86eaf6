"""What is no part of an audit and reads the package from outside: what reproduces, classifiers of known truth."""
