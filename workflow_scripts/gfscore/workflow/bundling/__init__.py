"""An audit as one folder that can be handed on, its statement to sign, and the check of such a folder by others.

`contents` says what a bundle holds, `writing` makes one, `statement` and `signatures` say what it vouches for and who,
`verifying` checks one, by `recomputed` values.
"""
