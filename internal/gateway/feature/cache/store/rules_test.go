package store

import (
	"strings"
	"testing"
	"time"

	"github.com/slipway-dev/slipway/internal/gateway/upstream"
)

// fieldsOf reads "Name: value" lines.
func fieldsOf(lines ...string) []upstream.Field {
	var fields []upstream.Field
	for _, line := range lines {
		if line == "" {
			continue
		}
		name, value, _ := strings.Cut(line, ": ")
		fields = append(fields, upstream.Field{Name: name, Value: value})
	}
	return fields
}

func get(lines ...string) *Request {
	return &Request{Backend: Backend{Namespace: "team", Service: "app", Way: "80"}, Method: "GET", Host: "a", Target: "/", Fields: fieldsOf(lines...), Plain: true}
}

var start = time.Date(2026, 11, 27, 12, 0, 0, 0, time.UTC)

const startText = "Fri, 27 Nov 2026 12:00:00 GMT"

// What a backend does not say in one way that everybody understands, it has not said.
func TestHowLongAResponseIsFresh(t *testing.T) {
	policy := &Policy{MaxAge: time.Hour, MaxBytes: 100}
	for name, tc := range map[string]struct {
		request  []string
		proven   bool
		status   int // 0: 200
		response []string
		want     time.Duration
	}{
		"max-age":                       {response: []string{"Cache-Control: max-age=60"}, want: time.Minute},
		"in capitals":                   {response: []string{"CACHE-CONTROL: Max-Age=60"}, want: time.Minute},
		"quoted":                        {response: []string{`Cache-Control: max-age="60"`}, want: time.Minute},
		"s-maxage comes first":          {response: []string{"Cache-Control: max-age=60, s-maxage=5"}, want: 5 * time.Second},
		"in two fields":                 {response: []string{"Cache-Control: max-age=60", "Cache-Control: s-maxage=5"}, want: 5 * time.Second},
		"the bound of the route":        {response: []string{"Cache-Control: max-age=99999999999999999999"}, want: time.Hour},
		"Expires":                       {response: []string{"Date: " + startText, "Expires: Fri, 27 Nov 2026 12:00:30 GMT"}, want: 30 * time.Second},
		"Expires without Date":          {response: []string{"Expires: Fri, 27 Nov 2026 12:00:30 GMT"}, want: 30 * time.Second},
		"max-age comes before Expires":  {response: []string{"Cache-Control: max-age=0", "Expires: Fri, 27 Nov 2026 12:00:30 GMT"}},
		"Expires that is no time":       {response: []string{"Expires: 0"}},
		"two different Expires":         {response: []string{"Expires: Fri, 27 Nov 2026 12:00:30 GMT", "Expires: Fri, 27 Nov 2026 12:00:40 GMT"}},
		"nothing is guessed":            {response: []string{"Last-Modified: Fri, 27 Nov 2020 12:00:00 GMT"}},
		"of two times the shorter":      {response: []string{"Cache-Control: max-age=60, max-age=5"}, want: 5 * time.Second},
		"no-store":                      {response: []string{"Cache-Control: max-age=60, no-store"}},
		"private":                       {response: []string{"Cache-Control: max-age=60, private"}},
		"private fields":                {response: []string{`Cache-Control: max-age=60, private="Set-Cookie, X-A"`}},
		"no-cache":                      {response: []string{"Cache-Control: max-age=60, no-cache"}},
		"a directive hidden in quotes":  {response: []string{`Cache-Control: x="a, max-age=60"`}},
		"no-store after broken quotes":  {response: []string{`Cache-Control: max-age=60, x="a, no-store`}},
		"a broken escape":               {response: []string{`Cache-Control: max-age=60, x="a\`}},
		"a broken time":                 {response: []string{"Cache-Control: max-age=1e3"}},
		"a negative time":               {response: []string{"Cache-Control: max-age=-1"}},
		"no time":                       {response: []string{"Cache-Control: max-age"}},
		"two words":                     {response: []string{"Cache-Control: max-age=60 no-store"}},
		"a blank in a directive":        {response: []string{"Cache-Control: max-age =60"}},
		"semicolons":                    {response: []string{"Cache-Control: max-age=60; no-store"}},
		"a cookie is set":               {response: []string{"Cache-Control: max-age=60", "Set-Cookie: a=1"}},
		"a part":                        {status: 206, response: []string{"Cache-Control: max-age=60", "Content-Range: bytes 0-1/2"}},
		"an error":                      {status: 503, response: []string{"Cache-Control: max-age=60"}},
		"not found":                     {status: 404, response: []string{"Cache-Control: max-age=60"}, want: time.Minute},
		"trailers":                      {response: []string{"Cache-Control: max-age=60", "Trailer: X-A"}},
		"the client wants nothing kept": {request: []string{"Cache-Control: no-store"}, response: []string{"Cache-Control: max-age=60"}},
		"credentials":                   {request: []string{"Authorization: Basic x"}, response: []string{"Cache-Control: max-age=60"}},
		"credentials, for everybody":    {request: []string{"Authorization: Basic x"}, response: []string{"Cache-Control: max-age=60, public"}, want: time.Minute},
		"credentials, for caches":       {request: []string{"Authorization: Basic x"}, response: []string{"Cache-Control: s-maxage=60"}, want: time.Minute},
		"proven to the gateway":         {proven: true, response: []string{"Cache-Control: max-age=60"}},
		"proven, must be revalidated":   {proven: true, response: []string{"Cache-Control: max-age=60, must-revalidate"}, want: time.Minute},
	} {
		r := get(tc.request...)
		r.Proven = tc.proven
		if tc.status == 0 {
			tc.status = 200
		}
		got := min(freshness(tc.status, fieldsOf(tc.response...), start), policy.MaxAge)
		if !wantsOf(r).copies || isForSomebody(r, fieldsOf(tc.response...)) {
			got = 0
		}
		if got != tc.want {
			t.Errorf("%s: fresh for %v, want %v", name, got, tc.want)
		}
	}
}

func TestHowOldAResponseIs(t *testing.T) {
	for name, tc := range map[string]struct {
		response []string
		want     time.Duration
		unknown  bool
	}{
		"made now":                {response: []string{"Date: Fri, 27 Nov 2026 12:00:02 GMT"}, want: 2 * time.Second}, // the time that it took to come
		"made long ago":           {response: []string{"Date: Fri, 27 Nov 2026 11:59:02 GMT"}, want: time.Minute},
		"out of another cache":    {response: []string{"Age: 100"}, want: 102 * time.Second},
		"of tomorrow":             {response: []string{"Date: Sat, 28 Nov 2026 12:00:00 GMT"}, want: 2 * time.Second},
		"an age twice":            {response: []string{"Age: 1", "Age: 2"}, unknown: true},
		"an age that is none":     {response: []string{"Age: 1, 2"}, unknown: true},
		"the same age twice":      {response: []string{"Age: 1", "Age: 1"}, want: 3 * time.Second},
		"an age below zero":       {response: []string{"Age: -1"}, unknown: true},
		"a time that is no time":  {response: []string{"Date: yesterday"}, want: 2 * time.Second},
		"of the year 1":           {response: []string{"Date: Mon, 01 Jan 0001 00:00:00 GMT"}, want: longest},
		"a very large age":        {response: []string{"Age: 99999999999999999999"}, want: longest},
		"a time before the epoch": {response: []string{"Date: Thu, 01 Jan 1950 00:00:00 GMT"}, want: longest},
	} {
		got, ok := ageOf(fieldsOf(tc.response...), start, start.Add(2*time.Second))
		if ok == tc.unknown || ok && got != tc.want {
			t.Errorf("%s: %v, %v, want %v", name, got, ok, tc.want)
		}
	}
}

func TestWhatAClientHasAlready(t *testing.T) {
	response := fieldsOf(`ETag: "a"`, "Last-Modified: "+startText)
	for name, tc := range map[string]struct {
		request []string
		want    bool
	}{
		"it does not say":            {},
		"this one":                   {request: []string{`If-None-Match: "a"`}, want: true},
		"weakly":                     {request: []string{`If-None-Match: W/"a"`}, want: true},
		"one of them":                {request: []string{`If-None-Match: "b", W/"c" , "a"`}, want: true},
		"in the second field":        {request: []string{`If-None-Match: "b"`, `If-None-Match: "a"`}, want: true},
		"any":                        {request: []string{"If-None-Match: *"}, want: true},
		"another":                    {request: []string{`If-None-Match: "b"`}},
		"with a comma in it":         {request: []string{`If-None-Match: "b, \"a\""`}},
		"without quotes":             {request: []string{"If-None-Match: a"}},
		"no end":                     {request: []string{`If-None-Match: "a`}},
		"as new":                     {request: []string{"If-Modified-Since: " + startText}, want: true},
		"older":                      {request: []string{"If-Modified-Since: Fri, 27 Nov 2026 11:59:59 GMT"}},
		"no time":                    {request: []string{"If-Modified-Since: now"}},
		"the tag comes before times": {request: []string{`If-None-Match: "b"`, "If-Modified-Since: " + startText}},
	} {
		if got := unmodified(get(tc.request...), 200, response); got != tc.want {
			t.Errorf("%s: %v", name, got)
		}
	}
	if unmodified(get("If-None-Match: *"), 404, response) {
		t.Error("a client that has an old page is told that it is not missing")
	}
}
