"""An audit as one folder that can be handed on, its statement to sign, and the check of such a folder by others.

`contents` says what a bundle holds, `writing` makes one, `statement` lists its files, `signatures` signs that list, and
`verifying` checks a bundle, by `recomputed` values.
"""
