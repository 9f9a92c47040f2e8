package schedule

import (
	"fmt"
	"strings"
	"time"
)

// maxCount bounds each number of a Period and of a Retention.
const maxCount = 9999

// Period is a length of time in units of the calendar.
type Period struct{ Years, Months, Weeks, Days, Hours int }

// ParseRetentionPolicy parses a period such as 30d or 1y6mo. The units are h, d, w, mo and y, each at most once. The error
// is an *Error.
func ParseRetentionPolicy(text string) (Period, error) {
	if text == "" || len(text) > maxText {
		return Period{}, invalid(FieldRetentionPolicy, "must be a period such as 30d, in units of h, d, w, mo and y")
	}
	var p Period
	rest := text
	for rest != "" {
		number := rest[:len(rest)-len(strings.TrimLeft(rest, "0123456789"))]
		rest = rest[len(number):]
		unit := rest[:len(rest)-len(strings.TrimLeft(rest, "abcdefghijklmnopqrstuvwxyz"))]
		rest = rest[len(unit):]
		count, err := parseCount(text, number)
		if err != nil {
			return Period{}, err
		}
		field, err := p.unit(text, unit)
		if err != nil {
			return Period{}, err
		}
		if *field != 0 {
			return Period{}, invalid(FieldRetentionPolicy, "%q has the unit %s twice", text, unit)
		}
		*field = count
	}
	return p, nil
}

// parseCount parses the number before a unit.
func parseCount(text, number string) (int, error) {
	if number == "" {
		return 0, invalid(FieldRetentionPolicy, "%q is not a period: each unit needs a number before it, as in 30d", text)
	}
	count := 0
	for _, digit := range number {
		if count = count*10 + int(digit-'0'); count > maxCount {
			return 0, invalid(FieldRetentionPolicy, "%q has a number above %d", text, maxCount)
		}
	}
	if number[0] == '0' {
		return 0, invalid(FieldRetentionPolicy, "%q has a number that is 0 or begins with 0", text)
	}
	return count, nil
}

// unit returns the field for a unit.
func (p *Period) unit(text, unit string) (*int, error) {
	switch unit {
	case "y":
		return &p.Years, nil
	case "mo":
		return &p.Months, nil
	case "w":
		return &p.Weeks, nil
	case "d":
		return &p.Days, nil
	case "h":
		return &p.Hours, nil
	case "m":
		return nil, invalid(FieldRetentionPolicy, "%q is ambiguous: m may mean minutes or months, write mo for months", text)
	default:
		return nil, invalid(FieldRetentionPolicy, "%q is not a period: the units are h, d, w, mo and y", text)
	}
}

// String returns the period as ParseRetentionPolicy accepts it, the largest unit first.
func (p Period) String() string {
	var text strings.Builder
	for _, part := range []struct {
		count int
		unit  string
	}{{p.Years, "y"}, {p.Months, "mo"}, {p.Weeks, "w"}, {p.Days, "d"}, {p.Hours, "h"}} {
		if part.count != 0 {
			fmt.Fprintf(&text, "%d%s", part.count, part.unit)
		}
	}
	return text.String()
}

// Before returns the time that is the period before another one, in the calendar of that time's zone. Years and months keep
// the day of the month, or take the last day of a shorter month: one month before 31 March is 28 or 29 February. Weeks and
// days keep the time of the day. Hours are real hours.
func (p Period) Before(t time.Time) time.Time {
	year, month, day := t.Date()
	first := time.Date(year-p.Years, month-time.Month(p.Months), 1, 0, 0, 0, 0, time.UTC)
	day = min(day, first.AddDate(0, 1, -1).Day())
	hour, minute, second := t.Clock()
	calendar := time.Date(first.Year(), first.Month(), day-7*p.Weeks-p.Days, hour, minute, second, t.Nanosecond(), t.Location())
	return calendar.Add(-time.Duration(p.Hours) * time.Hour)
}
