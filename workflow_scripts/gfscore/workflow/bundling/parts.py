"""What a bundle may hold besides the audit. Imports nothing, so that the help of the command is there at once."""

PARTS = {
    "logits": "the logits of every model, from which its scores are computed again",
    "networks": "the checkpoints of the models, as far as they are files",
    "images": "the file that holds the images of the dataset",
    "figures": "the figures as SVG, PDF and PNG; the pages show them in any case",
}
"""Parts by name, and what they are."""
