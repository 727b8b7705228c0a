"""The chart and the image on a real node. `make cluster-test` runs these; `make test` does not."""
