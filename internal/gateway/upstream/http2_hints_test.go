package upstream

import (
	"slices"
	"strconv"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// hinting sends informational responses for /hints before the final one, each with its number. It answers other requests at once.
func hinting(t testing.TB, statuses ...string) *backend {
	return framesBackend(t, func(s *streamsOf, stream uint32, path string) {
		if path == "/hints" {
			for i, status := range statuses {
				s.head(stream, false, status, "n", strconv.Itoa(i))
			}
		}
		s.head(stream, true, "200")
	})
}

func getHints() *Request {
	req := getHTTP2()
	req.Target, req.Deadline = "/hints", time.Now().Add(10*time.Second)
	return req
}

func TestAClientThatTakesNoHintsHoldsNobodyElse(t *testing.T) {
	b := hinting(t, slices.Repeat([]string{"103"}, maxInformational)...)
	s := serving(t, Options{}, b.address())
	release, reached := make(chan struct{}), make(chan struct{}, maxInformational)
	var got []string // belongs to the request until it has ended
	stuck := getHints()
	stuck.Informational = func(_ int, fields []Field) {
		reached <- struct{}{}
		<-release
		got = append(got, fields[0].Value)
	}
	ended := make(chan error, 1)
	go func() {
		response, err := s.Do(t.Context(), stuck)
		if err == nil {
			response.Close()
		}
		ended <- err
	}()
	<-reached
	other := getHTTP2()
	other.Deadline = time.Now().Add(5 * time.Second)
	response, err := s.Do(t.Context(), other)
	close(release)
	if err != nil {
		t.Fatalf("another request on the connection: %v", err)
	}
	response.Close()
	if err := <-ended; err != nil {
		t.Errorf("the request with hints: %v", err)
	}
	if n := b.accepted.Load(); n != 1 {
		t.Errorf("%d connections, so nothing was shown", n)
	}
	// Whether the first had left the queue before the others came is not known.
	if n := len(got); n != waitingHints && n != waitingHints+1 {
		t.Errorf("got hints %v, want those that may wait", got)
	}
	last := -1
	for _, text := range got { // one that came when there was room again may be among them
		n, err := strconv.Atoi(text)
		if err != nil || n <= last {
			t.Errorf("got hints %v, want them in order", got)
		}
		last = n
	}
}

func TestHintsComeBeforeTheResponse(t *testing.T) {
	b := hinting(t, "100", "103", "102", "103")
	var got []string
	req := getHints()
	req.Informational = func(status int, fields []Field) {
		got = append(got, strconv.Itoa(status)+" "+fields[0].Value)
	}
	response, err := serving(t, Options{}, b.address()).Do(t.Context(), req)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Close()
	if diff := cmp.Diff([]string{"103 1", "102 2", "103 3"}, got); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

func TestHTTP2InformationalResponsesAreBounded(t *testing.T) {
	for name, test := range map[string]struct {
		statuses []string
		want     Kind
	}{
		"none":                       {},
		"as many as may come":        {statuses: slices.Repeat([]string{"103"}, maxInformational)},
		"one more":                   {statuses: slices.Repeat([]string{"103"}, maxInformational+1), want: Malformed},
		"100 without end":            {statuses: slices.Repeat([]string{"100"}, maxInformational+1), want: Malformed},
		"to another protocol":        {statuses: []string{"101"}, want: Malformed},
		"hints and another protocol": {statuses: []string{"103", "101"}, want: Malformed},
	} {
		for _, wanted := range []bool{true, false} {
			t.Run(name+" wanted "+strconv.FormatBool(wanted), func(t *testing.T) {
				b := hinting(t, test.statuses...)
				s := serving(t, Options{}, b.address())
				var told atomic.Int64
				req := getHints()
				if wanted {
					req.Informational = func(status int, _ []Field) {
						told.Add(1)
						if status != 103 {
							t.Errorf("got %d", status)
						}
					}
				}
				response, err := s.Do(t.Context(), req)
				if test.want != 0 {
					wantKind(t, err, test.want)
				} else if err != nil {
					t.Fatal(err)
				} else {
					response.Close()
				}
				if n := told.Load(); n > maxInformational {
					t.Errorf("%d were passed on", n)
				}
				if status, _ := fetch(t, s, getHTTP2()); status != 200 {
					t.Errorf("the next request got %d", status)
				}
				wanted := int64(1) // the one that others use
				if test.want != 0 {
					wanted = 2 // who breaks the rules once is not asked again on the same connection
				}
				if got := b.accepted.Load(); got != wanted {
					t.Errorf("%d connections, want %d", got, wanted)
				}
			})
		}
	}
}
