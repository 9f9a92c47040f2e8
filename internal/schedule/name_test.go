package schedule

import (
	"fmt"
	"regexp"
	"strings"
	"testing"
	"time"
)

func TestRunName(t *testing.T) {
	slot := time.Date(2026, time.January, 1, 2, 0, 0, 0, time.UTC)
	if got, want := RunName("shop-data", slot), "shop-data-29453880"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	berlin, err := time.LoadLocation("Europe/Berlin")
	if err != nil {
		t.Fatal(err)
	}
	if got, want := RunName("shop-data", slot.In(berlin)), RunName("shop-data", slot); got != want {
		t.Errorf("in another zone: got %s, want %s", got, want)
	}
	long := strings.Repeat("a", 41) + strings.Repeat(".b", 100)
	first, second := RunName(long, slot), RunName(long+"b", slot)
	if first == second {
		t.Errorf("two backups have the same run %s", first)
	}
	name := regexp.MustCompile(`^[a-z0-9]([-a-z0-9]*[a-z0-9])?$`)
	for _, got := range []string{first, second} {
		if len(got) > 63 || !name.MatchString(got) {
			t.Errorf("%q cannot be a label", got)
		}
	}
	repeated := parse(t, "@hourly", "Europe/Berlin")
	hour := repeated.Next(time.Date(2026, time.October, 25, 0, 30, 0, 0, time.UTC))
	if RunName("shop", hour) == RunName("shop", repeated.Next(hour)) {
		t.Error("the two hours that show the same time have the same run")
	}
}

func TestJitterSpreadsBackups(t *testing.T) {
	const backups, minutes = 500, 10
	perMinute := map[int]int{}
	for i := range backups {
		key := fmt.Sprintf("team-%d/backup-%d", i/20, i)
		got := Jitter(key, minutes*time.Minute)
		if got != Jitter(key, minutes*time.Minute) {
			t.Fatalf("%s has two times", key)
		}
		perMinute[int(got/time.Minute)]++
	}
	for minute := range minutes {
		if n := perMinute[minute]; n < backups/minutes/2 || n > 2*backups/minutes {
			t.Errorf("%d backups start in minute %d", n, minute)
		}
	}
	if len(perMinute) != minutes {
		t.Errorf("%d minutes have a backup, want %d", len(perMinute), minutes)
	}
	for _, window := range []time.Duration{-time.Hour, 0, time.Millisecond, time.Second} {
		if got := Jitter("shop", window); got != 0 {
			t.Errorf("in %v: %v", window, got)
		}
	}
}
