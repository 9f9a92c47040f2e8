package exchange

import (
	"testing"
	"time"
)

func TestABodyHasALeastRate(t *testing.T) {
	tests := map[string]struct {
		allowed allowance
		piece   time.Duration
		want    time.Duration
	}{
		"at first a piece has its time":         {allowance{grace: time.Minute}, time.Minute, time.Minute},
		"and less when some has been waited":    {allowance{grace: time.Minute, waited: 50 * time.Second}, time.Minute, 10 * time.Second},
		"bytes buy time":                        {allowance{grace: time.Minute, waited: time.Minute, read: 2500}, time.Minute, 10 * time.Second},
		"but no more than a piece has":          {allowance{grace: time.Minute, waited: time.Minute, read: 1 << 62}, time.Minute, time.Minute},
		"nothing is left":                       {allowance{grace: time.Minute, waited: time.Hour, read: 60}, time.Minute, time.Nanosecond},
		"a route may give a piece more":         {allowance{grace: time.Minute, waited: time.Minute}, time.Hour, 59 * time.Minute},
		"or less, with the same time in all":    {allowance{grace: time.Minute, waited: 30 * time.Second}, time.Second, time.Second},
		"or as long as it takes":                {allowance{grace: time.Minute, waited: time.Hour}, 0, 0},
		"after the answer a piece has its time": {allowance{grace: time.Minute, waited: time.Hour, lifted: true}, time.Minute, time.Minute},
		"who sends fast enough is never late":   {allowance{grace: time.Minute, waited: 24 * time.Hour, read: 24 * 3600 * leastBodyRate}, time.Minute, time.Minute},
		"who sends half as much is, in the end": {allowance{grace: time.Minute, waited: 24 * time.Hour, read: 12 * 3600 * leastBodyRate}, time.Minute, time.Nanosecond},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			got := test.allowed.bound(test.piece)
			if difference := (got - test.want).Abs(); difference > time.Millisecond {
				t.Errorf("got %v, want %v", got, test.want)
			}
		})
	}
}
