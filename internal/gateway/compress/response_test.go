package compress

import (
	"net/http"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// fields makes a header from names and values.
func fields(pairs ...string) http.Header {
	header := http.Header{}
	for i := 0; i < len(pairs); i += 2 {
		header.Add(pairs[i], pairs[i+1])
	}
	return header
}

func TestResponses(t *testing.T) {
	policy, err := (&Policy{}).Complete()
	if err != nil {
		t.Fatal(err)
	}
	page := []string{"Content-Type", "text/html; charset=utf-8", "Content-Length", "5000"}
	encoded := []string{"Content-Type", "text/html; charset=utf-8", "Content-Encoding", "gzip", "Vary", "Accept-Encoding"}
	with := func(to []string, more ...string) []string { return append(append([]string{}, to...), more...) }
	varied := with(page, "Vary", "Accept-Encoding")
	for name, test := range map[string]struct {
		method   string // default: GET
		status   int    // default: 200
		request  []string
		proto10  bool
		length   int64 // default: 5000
		response []string
		want     []string
	}{
		"a page":                       {response: page, want: encoded},
		"not accepted":                 {request: []string{"Accept-Encoding", "gzip;q=0"}, response: page, want: varied},
		"an error page":                {status: 404, response: page, want: encoded},
		"length not known":             {length: -1, response: page[:2], want: encoded},
		"short":                        {length: 1023, response: page, want: page},
		"long enough":                  {length: 1024, response: page, want: encoded},
		"no type":                      {response: page[2:], want: page[2:]},
		"two types":                    {response: with(page, "Content-Type", "text/html"), want: with(page, "Content-Type", "text/html")},
		"an image":                     {response: []string{"Content-Type", "image/png"}, want: []string{"Content-Type", "image/png"}},
		"events":                       {response: []string{"Content-Type", "text/event-stream"}, want: []string{"Content-Type", "text/event-stream"}},
		"encoded already":              {response: with(page, "Content-Encoding", "br"), want: with(page, "Content-Encoding", "br")},
		"no-transform":                 {response: with(page, "Cache-Control", "max-age=1, No-Transform"), want: with(page, "Cache-Control", "max-age=1, No-Transform")},
		"no-transform by the client":   {request: []string{"Cache-Control", "no-transform"}, response: page, want: varied},
		"HTTP/1.0":                     {proto10: true, response: page, want: varied},
		"no content":                   {status: 204, response: page, want: page},
		"reset content":                {status: 205, response: page, want: page},
		"a part":                       {status: 206, response: page, want: varied},
		"a part of a short one":        {status: 206, length: 10, response: page, want: varied},
		"several parts":                {status: 206, response: []string{"Content-Type", "multipart/byteranges; boundary=a"}, want: []string{"Content-Type", "multipart/byteranges; boundary=a", "Vary", "Accept-Encoding"}},
		"a part of an image":           {status: 206, response: []string{"Content-Type", "image/png"}, want: []string{"Content-Type", "image/png"}},
		"a part that is encoded":       {status: 206, response: with(page, "Content-Encoding", "br"), want: with(page, "Content-Encoding", "br")},
		"a range that cannot be":       {status: 416, response: with(page, "Content-Range", "bytes */9"), want: with(page, "Content-Range", "bytes */9")},
		"a range that is asked for":    {request: []string{"Range", "bytes=0-1"}, response: page, want: varied},
		"a range of a short one":       {request: []string{"Range", "bytes=0-1"}, length: 10, response: page, want: page},
		"a strong tag":                 {response: with(page, "Etag", `"a"`), want: with(encoded, "Etag", `W/"a"`)},
		"a weak tag":                   {response: with(page, "Etag", `W/"a"`), want: with(encoded, "Etag", `W/"a"`)},
		"a tag that is none":           {response: with(page, "Etag", `a`), want: encoded},
		"a strong tag, not encoded":    {request: []string{"Accept-Encoding", "br"}, response: with(page, "Etag", `"a"`), want: with(varied, "Etag", `"a"`)},
		"ranges":                       {response: with(page, "Accept-Ranges", "bytes"), want: encoded},
		"varies by more":               {response: with(page, "Vary", "Origin"), want: with(encoded[:4], "Vary", "Origin", "Vary", "Accept-Encoding")},
		"varies already":               {response: with(page, "Vary", "Origin, accept-encoding"), want: with(encoded[:4], "Vary", "Origin, accept-encoding")},
		"varies by everything":         {response: with(page, "Vary", "*"), want: with(encoded[:4], "Vary", "*")},
		"a digest":                     {response: with(page, "Repr-Digest", "sha-256=:a:"), want: with(page, "Repr-Digest", "sha-256=:a:")},
		"a digest of the content":      {response: with(page, "Content-Digest", "sha-256=:a:"), want: with(page, "Content-Digest", "sha-256=:a:")},
		"an old digest":                {response: with(page, "Content-MD5", "a"), want: with(page, "Content-MD5", "a")},
		"a digest at the end":          {response: with(page, "Trailer", "X, content-digest"), want: with(page, "Trailer", "X, content-digest")},
		"signed":                       {response: with(page, "Signature", "a=:b:"), want: with(page, "Signature", "a=:b:")},
		"POST":                         {method: "POST", response: with(page, "Etag", `"a"`), want: with(page, "Etag", `"a"`)},
		"PUT":                          {method: "PUT", response: with(page, "Etag", `"a"`), want: with(page, "Etag", `"a"`)},
		"PATCH that changed nothing":   {method: "PATCH", status: 304, request: []string{"If-None-Match", `W/"a"`}, response: []string{"Etag", `"a"`}, want: []string{"Etag", `"a"`}},
		"HEAD":                         {method: "HEAD", response: with(page, "Etag", `"a"`), want: with(encoded, "Etag", `W/"a"`)},
		"HEAD of a short one":          {method: "HEAD", length: 10, response: page, want: page},
		"HEAD of an unknown length":    {method: "HEAD", length: -1, response: with(page[:2], "Etag", `"a"`), want: with(page[:2], "Vary", "Accept-Encoding", "Etag", `W/"a"`)},
		"not modified":                 {status: 304, request: []string{"If-None-Match", `"a"`}, response: []string{"Etag", `"a"`}, want: []string{"Etag", `"a"`, "Vary", "Accept-Encoding"}},
		"a page not modified":          {status: 304, response: page[:2], want: with(page[:2], "Vary", "Accept-Encoding")},
		"an image not modified":        {status: 304, response: []string{"Content-Type", "image/png"}, want: []string{"Content-Type", "image/png"}},
		"not modified, no-transform":   {status: 304, response: []string{"Cache-Control", "no-transform"}, want: []string{"Cache-Control", "no-transform"}},
		"not modified since encoded":   {status: 304, request: []string{"If-None-Match", `"b", W/"a"`}, response: []string{"Etag", `"a"`}, want: []string{"Etag", `W/"a"`, "Vary", "Accept-Encoding"}},
		"a tag with a comma":           {status: 304, request: []string{"If-None-Match", `"b", W/"x,y"`}, response: []string{"Etag", `"x,y"`}, want: []string{"Etag", `W/"x,y"`, "Vary", "Accept-Encoding"}},
		"a tag that ends another":      {status: 304, request: []string{"If-None-Match", `"b,W/"a"`}, response: []string{"Etag", `"a"`}, want: []string{"Etag", `"a"`, "Vary", "Accept-Encoding"}},
		"a tag within another":         {status: 304, request: []string{"If-None-Match", `"x, W/"`}, response: []string{"Etag", `"x`}, want: []string{"Etag", `"x`, "Vary", "Accept-Encoding"}},
		"tags that do not end":         {status: 304, request: []string{"If-None-Match", `W/"a`}, response: []string{"Etag", `"a"`}, want: []string{"Etag", `"a"`, "Vary", "Accept-Encoding"}},
		"not modified, both are known": {status: 304, request: []string{"If-None-Match", `"a", W/"a"`}, response: []string{"Etag", `"a"`}, want: []string{"Etag", `"a"`, "Vary", "Accept-Encoding"}},
	} {
		t.Run(name, func(t *testing.T) {
			r := &http.Request{Method: http.MethodGet, ProtoMajor: 1, ProtoMinor: 1, Header: fields(test.request...)}
			if test.method != "" {
				r.Method = test.method
			}
			if test.proto10 {
				r.ProtoMinor = 0
			}
			if r.Header["Accept-Encoding"] == nil {
				r.Header["Accept-Encoding"] = []string{"gzip"}
			}
			status, length := 200, int64(5000)
			if test.status != 0 {
				status = test.status
			}
			if test.length != 0 {
				length = test.length
			}
			header := fields(test.response...)
			policy.Decide(Request{Method: r.Method, Header: r.Header, HTTP10: !r.ProtoAtLeast(1, 1)}, status, header, length).Apply(header)
			if diff := cmp.Diff(fields(test.want...), header); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
}

func TestContentTypes(t *testing.T) {
	policy := &Policy{Types: []string{"text/*", "application/json", "application/*", "application/json-seq"}}
	for field, want := range map[string]bool{
		"text/event-stream": false, "Text/Event-Stream; a=b": false, "application/x-ndjson": false, "application/json-seq": true, "TEXT/Html;charset=x": true, "text/": false, "text": false, " application/json ": true, "application/xml": true,
		"application/grpc": false, "application/GRPC+proto": false, "application/grpc-web": false, "application/grpc-web-text; a=b": false, "image/text": false, "": false,
	} {
		if got := policy.lists(field); got != want {
			t.Errorf("%q: %v", field, got)
		}
	}
}

func TestPoliciesThatCannotBe(t *testing.T) {
	for name, policy := range map[string]Policy{
		"unknown":            {Codings: []Coding{codings}},
		"twice":              {Codings: []Coding{Gzip, Gzip}},
		"identity and more":  {Codings: []Coding{Gzip, Identity}},
		"negative":           {MinBytes: -1},
		"too large":          {MinBytes: MaxMinBytes + 1},
		"no slash":           {Types: []string{"html"}},
		"upper case":         {Types: []string{"text/HTML"}},
		"everything":         {Types: []string{"*/*"}},
		"part of a name":     {Types: []string{"text/h*"}},
		"with a parameter":   {Types: []string{"text/html;charset=utf-8"}},
		"too many":           {Types: make([]string, MaxTypes+1)},
		"an empty type":      {Types: []string{""}},
		"nothing before it":  {Types: []string{"/html"}},
		"nothing behind it":  {Types: []string{"text/"}},
		"a control charater": {Types: []string{"text/a\nb"}},
	} {
		if _, err := policy.Complete(); err == nil {
			t.Errorf("%s: accepted", name)
		}
	}
	if none, err := (&Policy{Codings: []Coding{Identity}}).Complete(); none != nil || err != nil {
		t.Errorf("identity: %v, %v", none, err)
	}
	if _, err := (&Policy{Types: DefaultTypes}).Complete(); err != nil {
		t.Error(err)
	}
	for _, stream := range streams {
		if (&Policy{Types: DefaultTypes}).lists(stream) {
			t.Errorf("%s is a stream, and in the defaults", stream)
		}
	}
}
