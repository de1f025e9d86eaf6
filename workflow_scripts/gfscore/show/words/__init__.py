"""What the tables of an audit show, in sentences."""
