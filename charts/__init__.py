"""The Helm chart, and what is made of other parts of the project for it."""
