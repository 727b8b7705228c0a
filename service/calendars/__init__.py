"""Works out the dates of calendars, whose libraries and whose input are kept out of the operator's own process."""
