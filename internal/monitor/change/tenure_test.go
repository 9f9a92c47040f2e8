package change

import (
	"testing"
	"time"
)

func TestWhatBelongsToANamespace(t *testing.T) {
	begun := time.Date(2026, 11, 28, 10, 0, 0, 0, time.UTC)
	tenure := &Tenure{UID: "now", Created: begun, ResourceVersion: "100"}
	for name, tc := range map[string]struct {
		tenure *Tenure
		origin Origin
		want   bool
	}{
		"made later":                                {tenure, Origin{Created: begun.Add(time.Second)}, true},
		"made before":                               {tenure, Origin{Created: begun.Add(-time.Second)}, false},
		"made before, and changed since":            {tenure, Origin{Created: begun.Add(-time.Second), Versions: []string{"200"}}, false},
		"made in the same second":                   {tenure, Origin{Created: begun}, false},
		"made in the same second, older":            {tenure, Origin{Created: begun, Versions: []string{"99", "100"}}, false},
		"made in the same second, newer":            {tenure, Origin{Created: begun, Versions: []string{"99", "101"}}, true},
		"made in the same second, with more digits": {tenure, Origin{Created: begun.Add(900 * time.Millisecond), Versions: []string{"1000"}}, true},
		"made in the same second, no number":        {tenure, Origin{Created: begun, Versions: []string{"", "x200"}}, false},
		"made nobody knows when":                    {tenure, Origin{Versions: []string{"200"}}, false},
		"in a namespace that is not there":          {nil, Origin{Created: begun.Add(time.Hour)}, false},
		"in a namespace made nobody knows when":     {&Tenure{UID: "now"}, Origin{Created: begun, Versions: []string{"200"}}, false},
	} {
		if got := tc.tenure.Has(tc.origin); got != tc.want {
			t.Errorf("what was %s: %t", name, got)
		}
	}
}

func TestWhenAnObjectWasMade(t *testing.T) {
	made := time.Date(2026, 11, 28, 10, 0, 0, 0, time.UTC)
	for body, want := range map[string]time.Time{
		`{"metadata":{"creationTimestamp":"2026-11-28T10:00:00Z","name":"a"}}`:                                                            made,
		`{"data":{"metadata":{"creationTimestamp":"2020-01-01T00:00:00Z"}},"metadata":{"creationTimestamp":"2026-11-28T11:00:00+01:00"}}`: made,
		`{"metadata":{"annotations":{"creationTimestamp":"2026-11-28T10:00:00Z"}}}`:                                                       {},
		`{"metadata":{"creationTimestamp":null}}`:                                                                                         {},
		`{"metadata":{"creationTimestamp":"yesterday"}}`:                                                                                  {},
		`{"metadata":"x"}`: {}, `{}`: {}, ``: {},
	} {
		if got := CreatedIn([]byte(body)); !got.Equal(want) {
			t.Errorf("%s: %s", body, got)
		}
	}
}
