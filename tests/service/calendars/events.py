"""Calendars in the iCalendar format for tests."""


def calendar(*events: str) -> str:
    """A calendar of these events."""
    head = "BEGIN:VCALENDAR\r\nVERSION:2.0\r\nPRODID:-//tests//EN\r\n"
    return head + "".join(events) + "END:VCALENDAR\r\n"


def event(*lines: str, uid: str = "one") -> str:
    """An event with these lines."""
    head = f"BEGIN:VEVENT\r\nUID:{uid}\r\nDTSTAMP:20260101T000000Z\r\n"
    return head + "".join(f"{line}\r\n" for line in lines) + "END:VEVENT\r\n"


def all_day(day: str, *lines: str, uid: str = "one") -> str:
    """An event on a date such as 20261224."""
    return event(f"DTSTART;VALUE=DATE:{day}", *lines, uid=uid)
