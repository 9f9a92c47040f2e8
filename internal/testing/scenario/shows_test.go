package scenario

import "testing"

func TestWhatAnObjectShows(t *testing.T) {
	object := map[string]any{
		"data": map[string]any{"web.tls.crt": "Y2VydGlmaWNhdGU="}, // certificate
		"spec": map[string]any{"replicas": int64(2)},
		"status": map[string]any{"listeners": []any{map[string]any{"name": "web", "conditions": []any{
			map[string]any{"type": "Programmed", "status": "True", "reason": "Programmed", "message": "every pod serves it"},
		}}}},
	}
	for want, shown := range map[string]bool{
		"Programmed=True/Programmed":   true,
		"Programmed=True/Program":      false,
		"Programmed=False/Programmed":  false,
		"says every pod":               true,
		"says no pod":                  false,
		"data web.tls.crt":             true,
		"data web.tls.crt=certificate": true,
		"data web.tls.crt=another":     false,
		"data web.tls.key":             false,
		"no data web.tls.key":          true,
		"no data web.tls.crt":          false,
		"replicas 2":                   true,
		"replicas 1":                   false,
		"nothing":                      false,
	} {
		if shows(object, true, want) != shown {
			t.Errorf("%q: want %v", want, shown)
		}
		if got := shows(nil, false, want); got != (want == showsNothing) {
			t.Errorf("no object, %q: got %v", want, got)
		}
	}
}
