package scenario

import (
	"testing"
	"time"
)

// revised are the versions of a WebApp whose Deployment is available since a second, and of its revision, which becomes good at
// another one.
func revised(spec map[string]any, available, good int64) []Version {
	at := func(second int64) string { return time.Unix(second, 0).UTC().Format(time.RFC3339) }
	return []Version{
		{Object: "WebApp/shop", Number: 1, Fields: map[string]any{"kind": "WebApp", "spec": spec}},
		{Object: "ControllerRevision/shop-1", Number: 5, At: time.Unix(good, 0), Asks: `{"data":1,"revision":1}`, Fields: map[string]any{
			"kind": "ControllerRevision", "revision": int64(1),
			"metadata": map[string]any{"ownerReferences": []any{map[string]any{"kind": "WebApp", "name": "shop"}}},
		}},
		{Object: "ControllerRevision/shop-1", Number: 2, At: time.Unix(0, 0), Asks: `{"data":1}`, Fields: map[string]any{"kind": "ControllerRevision"}},
		{Object: "Deployment/shop", Number: 3, Fields: map[string]any{"kind": "Deployment", "status": map[string]any{"conditions": []any{
			map[string]any{"type": "Available", "lastTransitionTime": at(available)},
		}}}},
		{Object: "Deployment/shop", Number: 9, Fields: map[string]any{"kind": "Deployment"}},
	}
}

func TestARevisionThatIsGoodTooSoonIsFound(t *testing.T) {
	minute := map[string]any{"rollout": map[string]any{"minReadySeconds": int64(60)}}
	tests := map[string]struct {
		history []Version
		found   int
	}{
		"at once":                    {revised(nil, 100, 101), 1},
		"a second before":            {revised(nil, 100, 109), 1},
		"in time":                    {revised(nil, 100, 110), 0},
		"a minute is asked for":      {revised(minute, 100, 110), 1},
		"a minute later":             {revised(minute, 100, 160), 0},
		"nobody says since when":     {revised(nil, -62135596800, 1), 0},
		"the Deployment is not seen": {revised(nil, 100, 101)[:3], 0},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			if problems := checkGood(tc.history); len(problems) != tc.found {
				t.Errorf("problems: %v, want %d", problems, tc.found)
			}
		})
	}
}

func TestAClaimToBeReadySaysNothingOfWhetherTheRevisionIsGood(t *testing.T) {
	history := revised(nil, 100, 110)
	if draft, good := claimed(history[2]), claimed(history[1]); draft != good {
		t.Errorf("%s is claimed, and %s when it is good", draft, good)
	}
	if before, after := claimed(Version{Object: "Deployment/shop", Asks: `{"revision":1}`}), claimed(Version{Object: "Deployment/shop", Asks: "{}"}); before == after {
		t.Errorf("a Deployment that asks for other things claims the same: %s", after)
	}
}
