package schedule

import (
	"errors"
	"strings"
	"testing"
	"time"
)

// An expression and a zone are refused with a field and a reason, or have slots that follow each other.
func FuzzParse(f *testing.F) {
	f.Add("30 2 * * *", "Europe/Berlin", int64(1774746000))
	f.Add("@hourly", "Australia/Lord_Howe", int64(1775314800))
	f.Add("0 0 29 2 *", "UTC", int64(3980000000))
	f.Add("0 0 30 2 *", "", int64(0))
	f.Add("TZ= * * * * *", "Local", int64(0))
	f.Add("*/0 , 1-2-3 4/5/6 x", "posix/../UTC", int64(-1))
	f.Fuzz(func(t *testing.T, expression, zone string, unix int64) {
		s, err := Parse(expression, zone)
		if err != nil {
			var failure *Error
			if !errors.As(err, &failure) || failure.Reason == "" || (failure.Field != FieldSchedule && failure.Field != FieldTimeZone) {
				t.Fatalf("got %v", err)
			}
			return
		}
		at := time.Unix(unix%(1<<36), 0)
		for range 3 {
			next := s.Next(at)
			if !next.After(at) {
				t.Fatalf("%q in %q: the slot after %v is %v", expression, zone, at, next)
			}
			if got := s.Latest(next); !got.Equal(next) {
				t.Fatalf("%q in %q: the latest slot at %v is %v", expression, zone, next, got)
			}
			if got := s.Latest(next.Add(-time.Second)); got.After(at) {
				t.Fatalf("%q in %q: there is a slot at %v between %v and %v", expression, zone, got, at, next)
			}
			at = next
		}
	})
}

// A period is refused with a reason, or is written as it was read, and leads back in time.
func FuzzParseRetentionPolicy(f *testing.F) {
	for _, text := range []string{"30d", "1y6mo2w3d12h", "6m", "0d", "9999y9999mo9999w9999d9999h", "1d1d", "30 d"} {
		f.Add(text, int64(1774746000))
	}
	f.Fuzz(func(t *testing.T, text string, unix int64) {
		p, err := ParseRetentionPolicy(text)
		if err != nil {
			var failure *Error
			if !errors.As(err, &failure) || failure.Field != FieldRetentionPolicy || failure.Reason == "" {
				t.Fatalf("got %v", err)
			}
			return
		}
		if again, err := ParseRetentionPolicy(p.String()); err != nil || again != p {
			t.Fatalf("%q is %+v, written as %s: %v", text, p, p, err)
		}
		if units := strings.Trim(text, "0123456789"); units == "m" || strings.ContainsAny(text, "+-. ") {
			t.Fatalf("%q is accepted", text)
		}
		from := time.Unix(unix%(1<<36), 0).UTC()
		if got := p.Before(from); !got.Before(from) {
			t.Fatalf("%q before %v is %v", text, from, got)
		}
	})
}

// Whatever the snapshots are, the rules of retention hold.
func FuzzRetention(f *testing.F) {
	f.Add([]byte("abcdefgh"), uint8(1), uint8(2), uint8(3), uint8(30), int64(1774746000))
	f.Add([]byte{0, 0, 255, 1, 7}, uint8(0), uint8(0), uint8(0), uint8(0), int64(0))
	f.Fuzz(func(t *testing.T, data []byte, last, daily, monthly, days uint8, unix int64) {
		retention := Retention{Last: int(last), Daily: int(daily), Monthly: int(monthly), Within: Period{Days: int(days)}, Zone: time.UTC}
		now := time.Unix(unix%(1<<33), 0)
		var snapshots []Snapshot
		for i, b := range data[:min(len(data), 100)] {
			age := time.Duration(int(b>>1)*int(b>>1)-10) * time.Hour
			snapshots = append(snapshots, Snapshot{ID: string(rune('a'+i%26)) + string(rune('a'+i/26)), Time: now.Add(-age), Verified: b&1 == 1})
		}
		checkRetention(t, retention, snapshots, retention.Keep(snapshots, now), now)
	})
}
