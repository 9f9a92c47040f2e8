package schedule

import (
	"math/rand/v2"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// next returns the local times of the next slots.
func next(s Schedule, from string, count int) []string {
	after, err := time.Parse(time.RFC3339, from)
	if err != nil {
		panic(err)
	}
	var slots []string
	for range count {
		after = s.Next(after)
		slots = append(slots, after.Format("02 15:04 -07:00"))
	}
	return slots
}

func TestSlotsWhereClocksChange(t *testing.T) {
	for name, test := range map[string]struct {
		cron, zone, from string
		want             []string
	}{
		"a skipped slot runs after the jump": {
			"30 2 * * *", "Europe/Berlin", "2026-03-28T00:00:00Z",
			[]string{"28 02:30 +01:00", "29 03:00 +02:00", "30 02:30 +02:00"},
		},
		"several skipped slots run once": {
			"*/10 2 * * *", "Europe/Berlin", "2026-03-28T01:45:00Z",
			[]string{"28 02:50 +01:00", "29 03:00 +02:00", "30 02:00 +02:00"},
		},
		"a skipped slot and the one after the jump are one": {
			"0 2,3 * * *", "Europe/Berlin", "2026-03-28T12:00:00Z",
			[]string{"29 03:00 +02:00", "30 02:00 +02:00", "30 03:00 +02:00"},
		},
		"a repeated slot runs once": {
			"30 2 * * *", "Europe/Berlin", "2026-10-24T12:00:00Z",
			[]string{"25 02:30 +02:00", "26 02:30 +01:00"},
		},
		"repeated slots run once each": {
			"*/30 1-3 * * *", "Europe/Berlin", "2026-10-24T23:00:00Z",
			[]string{"25 01:30 +02:00", "25 02:00 +02:00", "25 02:30 +02:00", "25 03:00 +01:00", "25 03:30 +01:00"},
		},
		"every hour, forward": {
			"30 * * * *", "Europe/Berlin", "2026-03-29T00:00:00Z",
			[]string{"29 01:30 +01:00", "29 03:30 +02:00", "29 04:30 +02:00"},
		},
		"every hour, back": {
			"30 * * * *", "Europe/Berlin", "2026-10-24T23:00:00Z",
			[]string{"25 01:30 +02:00", "25 02:30 +02:00", "25 02:30 +01:00", "25 03:30 +01:00"},
		},
		"every quarter, forward": {
			"*/15 * * * *", "Europe/Berlin", "2026-03-29T00:40:00Z",
			[]string{"29 01:45 +01:00", "29 03:00 +02:00", "29 03:15 +02:00"},
		},
		"New York, forward": {
			"15 2 * * *", "America/New_York", "2026-03-07T12:00:00Z",
			[]string{"08 03:00 -04:00", "09 02:15 -04:00"},
		},
		"New York, back": {
			"15 1 * * *", "America/New_York", "2026-10-31T12:00:00Z",
			[]string{"01 01:15 -04:00", "02 01:15 -05:00"},
		},
		"New York, every hour, back": {
			"@hourly", "America/New_York", "2026-11-01T04:30:00Z",
			[]string{"01 01:00 -04:00", "01 01:00 -05:00", "01 02:00 -05:00"},
		},
		"half an hour forward": {
			"15 2 * * *", "Australia/Lord_Howe", "2026-10-03T00:00:00Z",
			[]string{"04 02:30 +11:00", "05 02:15 +11:00"},
		},
		"half an hour forward, a slot that stays": {
			"45 2 * * *", "Australia/Lord_Howe", "2026-10-03T00:00:00Z",
			[]string{"04 02:45 +11:00", "05 02:45 +11:00"},
		},
		"half an hour forward, every hour": {
			"15 * * * *", "Australia/Lord_Howe", "2026-10-03T14:00:00Z",
			[]string{"04 01:15 +10:30", "04 02:45 +11:00", "04 03:15 +11:00"},
		},
		"half an hour back": {
			"45 1 * * *", "Australia/Lord_Howe", "2026-04-04T00:00:00Z",
			[]string{"05 01:45 +11:00", "06 01:45 +10:30"},
		},
		"half an hour back, every hour": {
			"45 * * * *", "Australia/Lord_Howe", "2026-04-04T14:30:00Z",
			[]string{"05 01:45 +11:00", "05 01:45 +10:30", "05 02:45 +10:30"},
		},
		"a zone without changes": {
			"30 2 * * *", "Asia/Kolkata", "2026-03-28T00:00:00Z",
			[]string{"29 02:30 +05:30", "30 02:30 +05:30"},
		},
		"UTC": {
			"30 2 * * *", "", "2026-03-28T02:30:00Z",
			[]string{"29 02:30 +00:00", "30 02:30 +00:00"},
		},
		"midnight is skipped": {
			"0 0 * * *", "Africa/Cairo", "2026-04-23T12:00:00Z",
			[]string{"24 01:00 +03:00", "25 00:00 +03:00"},
		},
		"a day is skipped": {
			"0 12 * * *", "Pacific/Apia", "2011-12-29T00:00:00Z",
			[]string{"29 12:00 -10:00", "31 00:00 +14:00", "31 12:00 +14:00"},
		},
		"the weekday is that of the zone": {
			"0 1 * * MON", "Pacific/Auckland", "2026-06-06T00:00:00Z",
			[]string{"08 01:00 +12:00", "15 01:00 +12:00"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			got := next(parse(t, test.cron, test.zone), test.from, len(test.want))
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
}

// At 00:01 the clock was set back to 23:01 of the day before.
func TestTheLatestSlotMayBeOfTheNextDay(t *testing.T) {
	s := parse(t, "0 0 * * *", "America/St_Johns")
	midnight := s.Next(time.Date(2010, time.November, 6, 12, 0, 0, 0, time.UTC))
	if got, want := midnight.Format(time.RFC3339), "2010-11-07T00:00:00-02:30"; got != want {
		t.Fatalf("got %s, want %s", got, want)
	}
	later := midnight.Add(10 * time.Minute)
	if later.Day() != 6 {
		t.Fatalf("the clock shows %v", later)
	}
	if got := s.Latest(later); !got.Equal(midnight) {
		t.Errorf("the latest slot until %v is %v, want %v", later, got, midnight)
	}
	if got := s.Next(later); got.Day() != 8 {
		t.Errorf("the next slot is %v, so 7 November has two", got)
	}
}

// Who looks at few days finds what who looks at all of them does, as far as it is there.
func TestASlotWithinAWhileIsThatOfAll(t *testing.T) {
	random := rand.New(rand.NewPCG(3, 4))
	expressions := []string{"* * * * *", "0 2 * * *", "30 23 * * 0", "0 0 29 2 *", "15 */6 1,15 * *", "59 23 31 12 *", "0 2 * 3,10 0"}
	for range 3000 {
		s := parse(t, expressions[random.IntN(len(expressions))], []string{"", "Europe/Berlin", "Pacific/Apia", "America/St_Johns"}[random.IntN(4)])
		at := time.Unix(1_200_000_000+random.Int64N(800_000_000), 0)
		while := time.Duration(1+random.IntN(72*60)) * time.Minute
		want, after := s.Latest(at), s.Next(at)
		if !want.After(at.Add(-while)) {
			want = time.Time{}
		}
		if after.After(at.Add(while)) {
			after = time.Time{}
		}
		if got := s.LatestWithin(at, while); !got.Equal(want) {
			t.Fatalf("%+v: the last slot in %v until %v is %v, want %v", s, while, at, got, want)
		}
		if got := s.NextWithin(at, while); !got.Equal(after) {
			t.Fatalf("%+v: the next slot in %v from %v is %v, want %v", s, while, at, got, after)
		}
	}
}

// ZoneBounds of Go 1.26 returns, for some days from 2040 on, an end of the offset that is not after the time.
func TestSlotsEndAlsoInManyYears(t *testing.T) {
	for _, zone := range []string{"Europe/Berlin", "Europe/London", "America/New_York", "Australia/Sydney", "Pacific/Auckland"} {
		s := parse(t, "0 2 * * *", zone)
		for year := 2039; year < 2110; year++ {
			for _, day := range []time.Time{time.Date(year, 12, 30, 22, 0, 0, 0, time.UTC), time.Date(year, 7, 1, 0, 0, 0, 0, time.UTC)} {
				for hour := range 72 {
					at := day.Add(time.Duration(hour) * time.Hour)
					next, latest := s.Next(at), s.Latest(at)
					if next.Sub(at) > 25*time.Hour || at.Sub(latest) > 25*time.Hour || next.Hour() != 2 || latest.Hour() != 2 {
						t.Fatalf("%s: around %v the slots are %v and %v", zone, at, latest, next)
					}
				}
			}
		}
	}
}
