package scenario

import (
	"strings"
	"testing"
	"time"
)

func TestOnlyTheOperatorsOwnTimeCounts(t *testing.T) {
	type look struct {
		after    time.Duration
		withheld bool
		moved    bool
		arrived  bool
	}
	tests := map[string]struct {
		looks []look
		// over is a part of what the last look says; the others say nothing.
		over      string
		came, all time.Duration
	}{
		"in time":                     {looks: []look{{after: 9 * time.Second, moved: true, arrived: true}, {after: 2 * time.Second, arrived: true}}, came: 9 * time.Second, all: 9 * time.Second},
		"not as it should be in time": {looks: []look{{after: 9 * time.Second, moved: true}, {after: 2 * time.Second}}, over: "within 10s", came: 9 * time.Second, all: 9 * time.Second},
		"as it should be too late":    {looks: []look{{after: 11 * time.Second, moved: true, arrived: true}}, over: "within 10s", came: 11 * time.Second, all: 11 * time.Second},
		"something happens too late":  {looks: []look{{after: time.Second, moved: true, arrived: true}, {after: 10 * time.Second, moved: true, arrived: true}}, over: "within 10s", came: 11 * time.Second, all: 11 * time.Second},
		"it could not know": {
			looks: []look{{after: time.Second, withheld: true}, {after: 20 * time.Second}, {after: 2 * time.Second, moved: true, arrived: true}},
			came:  3 * time.Second, all: 23 * time.Second,
		},
		"it could not know, and then is too slow": {
			looks: []look{{after: time.Second, withheld: true}, {after: 20 * time.Second}, {after: 10 * time.Second}}, over: "within 10s",
		},
		"it never knows":                   {looks: []look{{after: time.Second, withheld: true}, {after: 121 * time.Second, withheld: true}}, over: "only 1s are its own"},
		"it never comes to a steady state": {looks: []look{{after: time.Second, moved: true, arrived: true}, {after: 21 * time.Second, arrived: true}}, over: "does not rest", came: time.Second, all: time.Second},
		"it could not know again and again, and then rests": {
			looks: []look{
				{after: time.Second, moved: true, arrived: true},
				{after: 15 * time.Second, withheld: true, arrived: true},
				{after: time.Second, arrived: true},
				{after: 15 * time.Second, withheld: true, arrived: true},
				{after: time.Second, arrived: true},
				{after: time.Second, arrived: true},
			},
			came: time.Second, all: time.Second,
		},
		"it could not know, and then never comes to a steady state": {
			looks: []look{
				{after: time.Second, moved: true, arrived: true},
				{after: 15 * time.Second, withheld: true, arrived: true},
				{after: time.Second, arrived: true},
				{after: 22 * time.Second, arrived: true},
			},
			over: "does not rest", came: time.Second, all: time.Second,
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			now := time.Unix(0, 0)
			p := newPace(now, 10*time.Second, time.Second)
			for i, l := range tc.looks {
				now = now.Add(l.after)
				p.look(now, l.withheld)
				if l.moved {
					p.moved()
				}
				err, last := p.over(l.arrived), i == len(tc.looks)-1
				switch {
				case last && tc.over != "":
					if err == nil || !strings.Contains(err.Error(), tc.over) {
						t.Errorf("it says %v at the end, want %q", err, tc.over)
					}
				case err != nil:
					t.Errorf("after look %d it says: %v", i+1, err)
				}
			}
			if p.came != tc.came || p.all != tc.all {
				t.Errorf("came to rest after %v, all in all %v, want %v and %v", p.came, p.all, tc.came, tc.all)
			}
		})
	}
}

func TestTheSlowestStepsAreNamed(t *testing.T) {
	steps := []stepTime{{"quick", time.Second, time.Second}, {"slow", 3 * time.Second, 4 * time.Second}, {"waiting", 2 * time.Second, 9 * time.Second}}
	got := paces(steps)
	const want = "2s (median), 2s (99 %), 3s (worst) of the operator's own time, " +
		"4s (median), 4s (99 %), 9s (worst) with the time for which it could not know or act; " +
		"the slowest: slow (3s of 4s), waiting (2s of 9s), quick (1s of 1s)"
	if got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
}
