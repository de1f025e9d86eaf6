"""An audit as one folder that can be handed on, its statement to sign, and the check of such a folder by others.

`contents` says what a bundle holds, states and signs it; `recomputed` computes its files again from what they rest on;
`bundles` writes a bundle, and verifies one. This file imports nothing, so that the help of the command is there soon.
"""

PARTS = {
    "logits": "the logits of every model, from which its scores are computed again",
    "networks": "the checkpoints of the models, as far as they are files",
    "images": "the file that holds the images of the dataset",
    "proofs": "the networks and the pixels that certificates and counterexamples are about, to check these again",
    "figures": "the figures as SVG, PDF and PNG; the pages show them in any case",
}
"""What a bundle may hold besides the audit: parts by name, and what they are."""
