package schedule

import (
	"errors"
	"strings"
	"testing"
	"time"
	"unicode"
)

func TestParseRefuses(t *testing.T) {
	for name, test := range map[string]struct{ cron, zone, field, reason string }{
		"nothing":                       {"", "", FieldSchedule, "not a cron expression"},
		"six fields":                    {"0 0 2 * * *", "", FieldSchedule, "it has 6 fields, and should have five: minute"},
		"four fields":                   {"0 2 * *", "", FieldSchedule, "it has 4 fields, and should have five: minute"},
		"a minute out of range":         {"60 * * * *", "", FieldSchedule, "above maximum"},
		"an hour out of range":          {"0 24 * * *", "", FieldSchedule, "above maximum"},
		"day 0":                         {"0 0 0 * *", "", FieldSchedule, "below minimum"},
		"weekday 7":                     {"0 0 * * 7", "", FieldSchedule, "above maximum"},
		"a step of 0":                   {"*/0 * * * *", "", FieldSchedule, "positive"},
		"a word":                        {"@sometimes", "", FieldSchedule, "not a cron expression"},
		"a delay":                       {"@every 1h", "", FieldSchedule, "no fixed times"},
		"a zone in the expression":      {"TZ=UTC 0 2 * * *", "", FieldSchedule, "use the field timeZone"},
		"a cron zone in the expression": {"CRON_TZ=UTC 0 2 * * *", "", FieldSchedule, "use the field timeZone"},
		"a zone that does not end":      {"TZ=UTC", "", FieldSchedule, "use the field timeZone"},
		"letters that are not printed":  {"0 2 * * \u202e\x1b[31m", "", FieldSchedule, "not a cron expression"},
		"30 February":                   {"0 0 30 2 *", "", FieldSchedule, "never fires"},
		"31 in short months":            {"0 0 31 2,4,6,9,11 *", "", FieldSchedule, "never fires"},
		"no minute":                     {", * * * *", "", FieldSchedule, "never fires"},
		"no hour":                       {"0 , * * *", "", FieldSchedule, "never fires"},
		"no month":                      {"0 0 * , *", "", FieldSchedule, "never fires"},
		"a long expression":             {"0 2 * * " + strings.Repeat("1,", 200) + "1", "", FieldSchedule, "longer than"},
		"an unknown zone":               {"0 2 * * *", "Europe/Atlantis", FieldTimeZone, "not the name of a time zone"},
		"the machine's zone":            {"0 2 * * *", "Local", FieldTimeZone, "not the name of a time zone"},
		"an offset":                     {"0 2 * * *", "+02:00", FieldTimeZone, "not the name of a time zone"},
		"a path":                        {"0 2 * * *", "../../etc/passwd", FieldTimeZone, "not the name of a time zone"},
		"a long zone":                   {"0 2 * * *", strings.Repeat("Z", 300), FieldTimeZone, "longer than"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := Parse(test.cron, test.zone)
			var failure *Error
			if !errors.As(err, &failure) {
				t.Fatalf("got %v", err)
			}
			if failure.Field != test.field || !strings.Contains(failure.Reason, test.reason) {
				t.Errorf("got %q, want %s: ...%s...", err, test.field, test.reason)
			}
			if strings.ContainsFunc(failure.Reason, func(r rune) bool { return !unicode.IsPrint(r) }) {
				t.Errorf("%q has characters that are not printed", failure.Reason)
			}
		})
	}
}

func TestParseAccepts(t *testing.T) {
	from := time.Date(2026, time.January, 1, 0, 0, 0, 0, time.UTC)
	for cron, want := range map[string]string{
		"0 2 * * *":          "2026-01-01T02:00:00Z",
		"@daily":             "2026-01-02T00:00:00Z",
		"@hourly":            "2026-01-01T01:00:00Z",
		"@weekly":            "2026-01-04T00:00:00Z",
		"@yearly":            "2027-01-01T00:00:00Z",
		"*/20 * * * *":       "2026-01-01T00:20:00Z",
		"5/20 * * * *":       "2026-01-01T00:05:00Z",
		"0 12 * * MON-FRI":   "2026-01-01T12:00:00Z",
		"0 12 * * sun":       "2026-01-04T12:00:00Z",
		"0 0 1 jun ?":        "2026-06-01T00:00:00Z",
		"0 0 29 2 *":         "2028-02-29T00:00:00Z",
		"0 0 30 2 1":         "2026-02-02T00:00:00Z", // or a Monday in February
		"0 0 13 * 5":         "2026-01-02T00:00:00Z", // the 13th, or a Friday
		"0 0 */10 * 5":       "2026-01-02T00:00:00Z",
		"0 0 31 12 *":        "2026-12-31T00:00:00Z",
		"  0  2  *  *  *  ":  "2026-01-01T02:00:00Z",
		"59 23 31 12 *":      "2026-12-31T23:59:00Z",
		"0 0,12 1-3,10 * ? ": "2026-01-01T12:00:00Z",
	} {
		if got := parse(t, cron, "").Next(from).Format(time.RFC3339); got != want {
			t.Errorf("%s: next is %s, want %s", cron, got, want)
		}
	}
}

func TestALeapDayIsFoundAroundACenturyWithoutOne(t *testing.T) {
	s := parse(t, "0 0 29 2 *", "")
	got := s.Next(time.Date(2096, time.March, 1, 0, 0, 0, 0, time.UTC))
	if want := time.Date(2104, time.February, 29, 0, 0, 0, 0, time.UTC); !got.Equal(want) {
		t.Errorf("next is %v, want %v", got, want)
	}
	if got := s.Latest(got.Add(-time.Second)); got.Year() != 2096 {
		t.Errorf("latest is %v", got)
	}
}

func parse(t testing.TB, cron, zone string) Schedule {
	t.Helper()
	s, err := Parse(cron, zone)
	if err != nil {
		t.Fatal(err)
	}
	return s
}
