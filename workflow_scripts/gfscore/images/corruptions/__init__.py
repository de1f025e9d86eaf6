"""The fifteen common corruptions at five severities, for images of any size (Hendrycks and Dietterich 2019).

`parameters` holds the published parameters, and the settings that name corruptions and severities; it imports nothing
heavy. `catalogue` makes corrupted copies; noise and digital corruptions are defined there, the others in `blur` and
`weather`.
"""
