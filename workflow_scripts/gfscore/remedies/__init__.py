"""Remedies for classifiers whose classes differ in robustness: class offsets, chosen under attacks that see them.

`seen_points` remembers where attacks led and says what offsets would make of it, `offsets` chooses, `attacked_images`
attacks the images that the choice is made on. What a remedy achieves is judged in gfscore.audit.
"""
