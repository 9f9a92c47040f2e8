package store

import (
	"runtime"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// allocated returns how many bytes a call takes.
func allocated(call func()) uint64 {
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	call()
	runtime.ReadMemStats(&after)
	return after.TotalAlloc - before.TotalAlloc
}

func TestTheSameLineManyTimesIsReadOnce(t *testing.T) {
	for _, line := range []string{"Dnt: ", "Dnt: 1", "X-Other: 1"} {
		r := get(slices.Repeat([]string{line}, 13_000)...)
		var q question
		if bytes := allocated(func() { q = newQuestion(r) }); bytes > 2<<20 {
			t.Errorf("%s: %d bytes", line, bytes)
		}
		if q.page != newQuestion(get()).page {
			t.Errorf("%s: another page", line)
		}
	}
}

func TestWhatVaryComparesKeepsItsLines(t *testing.T) {
	for name, test := range map[string]struct {
		lines []string
		want  map[string]string
	}{
		"none":                    {nil, map[string]string{}},
		"one":                     {[]string{"Accept-Language: de"}, map[string]string{"accept-language": "\x02de"}},
		"an empty one":            {[]string{"DNT: "}, map[string]string{"dnt": "\x00"}},
		"several, and others":     {[]string{"dnt: 1", "X-A: b", "Accept-Language: de", "Dnt: 0"}, map[string]string{"dnt": "\x011\x010", "accept-language": "\x02de"}},
		"several in another form": {[]string{"Dnt: 10"}, map[string]string{"dnt": "\x0210"}},
	} {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(test.want, newQuestion(get(test.lines...)).values); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
}
