"""`5spot console`: the fleet as web pages, with the rights of the user and no others."""
