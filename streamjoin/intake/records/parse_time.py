"""ISO 8601 text to days and microseconds since 1970-01-01, years 0001 to 9999.

    date       2024-05-31
    timestamp  2024-05-31T12:30, then seconds, fraction and zone where given: :00, .5, Z, +02:00, +0200 or +02

A timestamp without a zone is UTC, one without a time is midnight; a blank may stand for the T. Digits of the fraction
beyond microseconds are cut off. Leap seconds are refused, because Arrow has no place for them.
"""

from __future__ import annotations

from streamjoin.intake.records.cells import MALFORMED, OUT_OF_RANGE, Bytes, Flags, Longs
from streamjoin.kernel import lean_kernel


@lean_kernel
def _two_digits(data: Bytes, at: int, end: int, limit: int) -> int:
    """The number two digits at `at` write, or -1 when they are not there or reach `limit`."""
    if at + 2 > end:
        return -1
    tens = int(data[at]) - 0x30
    ones = int(data[at + 1]) - 0x30
    if tens < 0 or tens > 9 or ones < 0 or ones > 9 or tens * 10 + ones >= limit:
        return -1
    return tens * 10 + ones


@lean_kernel
def _month_days(year: int, month: int) -> int:
    if month == 2:
        return 29 if year % 4 == 0 and (year % 100 != 0 or year % 400 == 0) else 28
    return 30 if month == 4 or month == 6 or month == 9 or month == 11 else 31


@lean_kernel
def _day_number(year: int, month: int, day: int) -> int:
    """Days from 1970-01-01 in the Gregorian calendar, for years from 1."""
    # Years counted from March end with the leap day, so days before a month follow one formula.
    shifted = year if month > 2 else year - 1
    month_from_march = (month + 9) % 12
    day_of_year = (153 * month_from_march + 2) // 5 + day - 1
    # 719468 days lie between 0000-03-01 and 1970-01-01.
    return shifted * 365 + shifted // 4 - shifted // 100 + shifted // 400 + day_of_year - 719468


@lean_kernel
def _date(data: Bytes, at: int, end: int) -> tuple[int, bool]:
    """The date that fills `data[at:at + 10]`: (day number, whether there is one)."""
    century = _two_digits(data, at, end, 100)
    year_of_century = _two_digits(data, at + 2, end, 100)
    month = _two_digits(data, at + 5, end, 13)
    day = _two_digits(data, at + 8, end, 32)
    if century < 0 or year_of_century < 0 or month < 1 or day < 1 or data[at + 4] != 0x2D or data[at + 7] != 0x2D:
        return 0, False
    year = century * 100 + year_of_century
    if year < 1 or day > _month_days(year, month):
        return 0, False
    return _day_number(year, month, day), True


@lean_kernel
def _zone(data: Bytes, at: int, end: int) -> tuple[int, bool]:
    """What of a timestamp follows the time: (minutes east of UTC, whether it is a zone)."""
    if at == end or (at + 1 == end and (data[at] == 0x5A or data[at] == 0x7A)):
        return 0, True
    if data[at] != 0x2B and data[at] != 0x2D:
        return 0, False
    hours = _two_digits(data, at + 1, end, 24)
    minutes = 0
    rest = at + 3
    if rest < end:
        if data[rest] == 0x3A:
            rest += 1
        minutes = _two_digits(data, rest, end, 60)
        rest += 2
    if hours < 0 or minutes < 0 or rest != end:
        return 0, False
    east = hours * 60 + minutes
    return (east if data[at] == 0x2B else -east), True


@lean_kernel
def _timestamp(data: Bytes, at: int, end: int) -> tuple[int, int, int]:
    """(seconds since 1970, nanoseconds in the next one, fault); finer digits are cut off."""
    days, is_date = _date(data, at, end)
    if not is_date:
        return 0, 0, MALFORMED
    at += 10
    if at == end:
        return days * 86_400, 0, 0
    if data[at] != 0x54 and data[at] != 0x74 and data[at] != 0x20:
        return 0, 0, MALFORMED
    hours = _two_digits(data, at + 1, end, 24)
    minutes = _two_digits(data, at + 4, end, 60)
    if hours < 0 or minutes < 0 or data[at + 3] != 0x3A:
        return 0, 0, MALFORMED
    at += 6
    seconds = 0
    fraction_ns = 0
    if at < end and data[at] == 0x3A:
        seconds = _two_digits(data, at + 1, end, 60)
        if seconds < 0:
            return 0, 0, MALFORMED
        at += 3
        if at < end and data[at] == 0x2E:
            at += 1
            first = at
            unit_ns = 100_000_000
            while at < end and 0x30 <= data[at] <= 0x39:
                digit = int(data[at]) - 0x30
                fraction_ns += digit * unit_ns
                unit_ns //= 10
                at += 1
            if at == first:
                return 0, 0, MALFORMED
    east, is_zone = _zone(data, at, end)
    if not is_zone:
        return 0, 0, MALFORMED
    total_minutes = (days * 24 + hours) * 60 + minutes - east
    return total_minutes * 60 + seconds, fraction_ns, 0


@lean_kernel
def parse_timestamps(data: Bytes, start: Longs, length: Longs, filled: Flags, out: Longs, fault: Bytes) -> None:
    """Microseconds since 1970 in UTC for every filled row without a fault; a finer fraction is cut off."""
    for row in range(len(start)):
        if filled[row] and not fault[row]:
            seconds, fraction_ns, fault[row] = _timestamp(data, start[row], start[row] + length[row])
            out[row] = seconds * 1_000_000 + fraction_ns // 1_000


@lean_kernel
def parse_timestamps_ns(data: Bytes, start: Longs, length: Longs, filled: Flags, out: Longs, fault: Bytes) -> None:
    """Nanoseconds since 1970 in UTC, of the years 1677 to 2262, for every filled row without a fault."""
    for row in range(len(start)):
        if filled[row] and not fault[row]:
            seconds, fraction_ns, fault[row] = _timestamp(data, start[row], start[row] + length[row])
            if seconds <= -9_223_372_036 or seconds >= 9_223_372_036:
                fault[row] = fault[row] or OUT_OF_RANGE
            else:
                out[row] = seconds * 1_000_000_000 + fraction_ns


@lean_kernel
def parse_dates(data: Bytes, start: Longs, length: Longs, filled: Flags, out: Longs, fault: Bytes) -> None:
    """Days since 1970 for every filled row without a fault."""
    for row in range(len(start)):
        if filled[row] and not fault[row]:
            days, is_date = _date(data, start[row], start[row] + length[row])
            out[row] = days
            if length[row] != 10 or not is_date:
                fault[row] = MALFORMED
