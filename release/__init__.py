"""What a release consists of: `make release` makes all of it from a checkout, offline, the same bytes each time.

Not part of the wheel or the image.
"""
