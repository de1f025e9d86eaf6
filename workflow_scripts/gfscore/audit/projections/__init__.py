"""Tables of the projections of all models of an audit."""
