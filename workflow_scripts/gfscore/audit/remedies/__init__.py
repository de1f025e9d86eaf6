"""Remedies as an audit judges them: an original and an adjusted model on samples that nothing was chosen on."""
