"""gfscore adjust: an audit that also looks for a remedy, and the adjusted network as a file."""
