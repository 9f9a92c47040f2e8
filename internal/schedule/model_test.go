package schedule

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/slipway-dev/slipway/internal/testing/property"
)

// model finds the slots after from, up to until, by looking at the clock in each minute, without the rules of time zones. It
// begins a day earlier, to know which times the clock has shown before. Both times are whole minutes.
func model(s Schedule, from, until time.Time) []int64 {
	shown := map[int64]bool{}
	slots := map[int64]bool{}
	begin := from.Add(-30 * time.Hour)
	clock := wallOf(begin.In(s.zone)) - 60
	for at := begin; !at.After(until); at = at.Add(time.Minute) {
		now := wallOf(at.In(s.zone))
		for skipped := clock + 60; skipped < now; skipped += 60 {
			if !s.matchesWall(skipped) {
				continue
			}
			slot := at.Unix()
			if s.everyHour() {
				slot += skipped - (clock + 60)
			}
			slots[slot] = true
		}
		if s.matchesWall(now) && (s.everyHour() || !shown[now]) {
			slots[at.Unix()] = true
		}
		shown[now] = true
		clock = now
	}
	var list []int64
	for slot := range slots {
		if slot > from.Unix() && slot <= until.Unix() {
			list = append(list, slot)
		}
	}
	slices.Sort(list)
	return list
}

func wallOf(local time.Time) int64 {
	return dateOf(local).wall(local.Hour(), local.Minute())
}

func (s Schedule) matchesWall(wall int64) bool {
	t := time.Unix(wall, 0).UTC()
	return s.matches(dateOf(t)) && s.hours&(1<<t.Hour()) != 0 && s.minutes&(1<<t.Minute()) != 0
}

// times are around changes of clocks, or are ordinary.
var times = []struct {
	zone string
	at   time.Time
}{
	{"Europe/Berlin", time.Date(2026, time.March, 29, 1, 0, 0, 0, time.UTC)},
	{"Europe/Berlin", time.Date(2026, time.October, 25, 1, 0, 0, 0, time.UTC)},
	{"America/New_York", time.Date(2026, time.March, 8, 7, 0, 0, 0, time.UTC)},
	{"America/New_York", time.Date(2026, time.November, 1, 6, 0, 0, 0, time.UTC)},
	{"Australia/Lord_Howe", time.Date(2026, time.April, 4, 15, 0, 0, 0, time.UTC)},
	{"Australia/Lord_Howe", time.Date(2026, time.October, 3, 15, 30, 0, 0, time.UTC)},
	{"Asia/Kolkata", time.Date(2026, time.March, 29, 1, 0, 0, 0, time.UTC)},
	{"UTC", time.Date(2028, time.February, 29, 0, 0, 0, 0, time.UTC)},
	{"Africa/Cairo", time.Date(2026, time.April, 23, 22, 0, 0, 0, time.UTC)},
	{"Africa/Cairo", time.Date(2026, time.October, 29, 21, 0, 0, 0, time.UTC)},
	{"America/Sao_Paulo", time.Date(2018, time.November, 4, 3, 0, 0, 0, time.UTC)},
	{"America/St_Johns", time.Date(2010, time.November, 7, 2, 31, 0, 0, time.UTC)},
	{"Pacific/Apia", time.Date(2011, time.December, 30, 10, 0, 0, 0, time.UTC)},
	{"Antarctica/Troll", time.Date(2026, time.March, 29, 1, 0, 0, 0, time.UTC)},
}

// randomCron returns an expression that fires often enough to have slots in a few days.
func randomCron(random *rand.Rand) string {
	field := func(low, high int, stars int) string {
		n := func() int { return low + random.IntN(high-low+1) }
		switch random.IntN(4 + stars) {
		case 0:
			return fmt.Sprint(n())
		case 1:
			a, b := n(), n()
			return fmt.Sprintf("%d-%d", min(a, b), max(a, b))
		case 2:
			return fmt.Sprintf("*/%d", 1+random.IntN(high-low))
		case 3:
			return fmt.Sprintf("%d,%d,%d", n(), n(), n())
		default:
			return "*"
		}
	}
	return strings.Join([]string{field(0, 59, 1), field(0, 23, 4), field(1, 28, 9), "*", field(0, 6, 9)}, " ")
}

func TestSlotsAreThoseOfAClock(t *testing.T) {
	count, source := property.Inputs(t, 300, 30)
	random := source(1)
	found := 0
	for range count {
		place, cron := times[random.IntN(len(times))], randomCron(random)
		s := parse(t, cron, place.zone)
		from := place.at.Add(-time.Duration(random.IntN(30*60)) * time.Minute)
		until := from.Add(time.Duration(12+random.IntN(24)) * time.Hour)
		want := model(s, from, until)
		found += len(want)
		checkSlots(t, s, cron+" in "+place.zone, from, until, want)
	}
	if found < count {
		t.Errorf("only %d slots in %d tries", found, count)
	}
}

// checkSlots compares Next and Latest with the slots after from, up to until.
func checkSlots(t *testing.T, s Schedule, name string, from, until time.Time, want []int64) {
	t.Helper()
	at := from
	for i, slot := range want {
		if got := s.Next(at); got.Unix() != slot {
			t.Fatalf("%s: slot %d after %v is %v, want %v", name, i, from, got, time.Unix(slot, 0).In(s.zone))
		}
		at = time.Unix(slot, 0)
		if i%7 != 0 {
			continue
		}
		if got := s.Latest(at); !got.Equal(at) {
			t.Fatalf("%s: the latest slot until %v is %v", name, at.In(s.zone), got)
		}
		if i > 0 {
			if got := s.Latest(at.Add(-time.Second)); got.Unix() != want[i-1] {
				t.Fatalf("%s: the latest slot before %v is %v", name, at.In(s.zone), got)
			}
		}
	}
	if got := s.Next(at); !got.After(until) {
		t.Fatalf("%s: there is another slot, %v", name, got)
	}
}
