package schedule

import (
	"errors"
	"strings"
	"testing"
	"time"
)

func TestParseRetentionPolicy(t *testing.T) {
	for text, want := range map[string]Period{
		"30d":           {Days: 30},
		"12h":           {Hours: 12},
		"4w":            {Weeks: 4},
		"6mo":           {Months: 6},
		"1y":            {Years: 1},
		"1y6mo2w3d12h":  {Years: 1, Months: 6, Weeks: 2, Days: 3, Hours: 12},
		"12h1y":         {Years: 1, Hours: 12},
		"9999d":         {Days: 9999},
		"1mo1d":         {Months: 1, Days: 1},
		"10d10h10mo10y": {Years: 10, Months: 10, Days: 10, Hours: 10},
	} {
		got, err := ParseRetentionPolicy(text)
		if err != nil || got != want {
			t.Errorf("%s: got %+v, %v, want %+v", text, got, err, want)
		}
		if again, err := ParseRetentionPolicy(got.String()); err != nil || again != got {
			t.Errorf("%s: written as %s, which is %+v, %v", text, got, again, err)
		}
	}
}

func TestParseRetentionPolicyRefuses(t *testing.T) {
	for text, reason := range map[string]string{
		"":                        "must be a period",
		"30":                      "the units are",
		"d":                       "needs a number",
		"30m":                     "write mo for months",
		"1y6m":                    "write mo for months",
		"30s":                     "the units are",
		"30D":                     "the units are",
		"30 d":                    "the units are",
		" 30d":                    "needs a number",
		"-30d":                    "needs a number",
		"1.5d":                    "the units are",
		"30d30d":                  "unit d twice",
		"1mo2d3mo":                "unit mo twice",
		"0d":                      "is 0 or begins with 0",
		"030d":                    "is 0 or begins with 0",
		"10000d":                  "above 9999",
		"99999999999999999999d":   "above 9999",
		"30days":                  "the units are",
		"1yd":                     "the units are",
		"30д":                     "the units are",
		"٣d":                      "needs a number",
		strings.Repeat("1d", 200): "must be a period",
	} {
		_, err := ParseRetentionPolicy(text)
		var failure *Error
		if !errors.As(err, &failure) || failure.Field != FieldRetentionPolicy || !strings.Contains(failure.Reason, reason) {
			t.Errorf("%q: got %v, want ...%s...", text, err, reason)
		}
	}
}

func TestPeriodBefore(t *testing.T) {
	for name, test := range map[string]struct{ period, zone, from, want string }{
		"days":                       {"30d", "UTC", "2026-03-31T12:00:00Z", "2026-03-01T12:00:00Z"},
		"a month with more days":     {"1mo", "UTC", "2026-03-31T12:00:00Z", "2026-02-28T12:00:00Z"},
		"in a leap year":             {"1mo", "UTC", "2028-03-31T12:00:00Z", "2028-02-29T12:00:00Z"},
		"a month over the new year":  {"2mo", "UTC", "2026-01-31T12:00:00Z", "2025-11-30T12:00:00Z"},
		"the same day":               {"1mo", "UTC", "2026-03-15T12:00:00Z", "2026-02-15T12:00:00Z"},
		"a year from a leap day":     {"1y", "UTC", "2028-02-29T12:00:00Z", "2027-02-28T12:00:00Z"},
		"four years from a leap day": {"4y", "UTC", "2028-02-29T12:00:00Z", "2024-02-29T12:00:00Z"},
		"months, then days":          {"1mo1d", "UTC", "2026-03-31T12:00:00Z", "2026-02-27T12:00:00Z"},
		"weeks and hours":            {"1w12h", "UTC", "2026-03-31T12:00:00Z", "2026-03-24T00:00:00Z"},
		"a day keeps the time":       {"1d", "Europe/Berlin", "2026-03-29T12:00:00+02:00", "2026-03-28T12:00:00+01:00"},
		"hours are real":             {"24h", "Europe/Berlin", "2026-03-29T12:00:00+02:00", "2026-03-28T11:00:00+01:00"},
		"many months":                {"9999mo", "UTC", "2026-03-31T12:00:00Z", "1192-12-31T12:00:00Z"},
	} {
		period, err := ParseRetentionPolicy(test.period)
		if err != nil {
			t.Fatal(err)
		}
		zone, err := time.LoadLocation(test.zone)
		if err != nil {
			t.Fatal(err)
		}
		if got := period.Before(at(test.from).In(zone)); !got.Equal(at(test.want)) {
			t.Errorf("%s: got %v, want %s", name, got, test.want)
		}
	}
}
