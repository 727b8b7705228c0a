"""The only place that speaks to API servers."""
