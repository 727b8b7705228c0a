"""May it be stored: admission review, verdicts and defaults."""
