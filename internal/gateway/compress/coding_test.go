package compress

import (
	"strings"
	"testing"
)

func TestNegotiation(t *testing.T) {
	both := []Coding{Zstd, Gzip}
	for name, test := range map[string]struct {
		lines []string
		codes []Coding
		want  Coding
	}{
		"no field":                         {nil, both, Identity},
		"empty field":                      {[]string{""}, both, Identity},
		"a browser":                        {[]string{"gzip, deflate, br, zstd"}, both, Zstd},
		"the order of the route":           {[]string{"zstd, gzip"}, []Coding{Gzip, Zstd}, Gzip},
		"weights come first":               {[]string{"zstd;q=0.5, gzip;q=0.501"}, both, Gzip},
		"equal weights":                    {[]string{"gzip;q=0.5, zstd;q=0.5"}, both, Zstd},
		"several lines":                    {[]string{"br", "gzip"}, both, Gzip},
		"any":                              {[]string{"*"}, both, Gzip},
		"any, of one that few know":        {[]string{"*"}, []Coding{Zstd}, Identity},
		"any but one":                      {[]string{"*, zstd;q=0"}, both, Gzip},
		"none by any":                      {[]string{"*;q=0"}, both, Identity},
		"one, and no other":                {[]string{"gzip, *;q=0"}, both, Gzip},
		"no identity, and nothing else":    {[]string{"identity;q=0"}, both, Identity},
		"no identity, and any":             {[]string{"identity;q=0, *;q=0.1"}, both, Gzip},
		"identity preferred":               {[]string{"identity, gzip;q=0.9"}, both, Identity},
		"identity alike":                   {[]string{"identity, gzip"}, both, Gzip},
		"identity less":                    {[]string{"identity;q=0.5, gzip;q=0.9"}, both, Gzip},
		"least weight":                     {[]string{"gzip;q=0.001"}, both, Gzip},
		"zero":                             {[]string{"gzip;q=0.000, zstd;q=0"}, both, Identity},
		"old name":                         {[]string{"x-gzip"}, both, Gzip},
		"letter case":                      {[]string{"GZip;Q=1.000"}, both, Gzip},
		"spaces":                           {[]string{" \tgzip ; q=0.8 ,"}, both, Gzip},
		"unknown ones":                     {[]string{"br, compress, deflate, exi"}, both, Identity},
		"named twice":                      {[]string{"gzip, gzip;q=0"}, both, Identity},
		"part of a name":                   {[]string{"gzipped, agzip"}, both, Identity},
		"more than one":                    {[]string{"gzip;q=1.001"}, both, Identity},
		"negative":                         {[]string{"gzip;q=-1"}, both, Identity},
		"not a number":                     {[]string{"gzip;q=NaN"}, both, Identity},
		"four digits":                      {[]string{"gzip;q=0.0001"}, both, Identity},
		"another parameter":                {[]string{"gzip;level=9"}, both, Identity},
		"a weight and another parameter":   {[]string{"gzip;q=1;x=1"}, both, Identity},
		"empty weight":                     {[]string{"gzip;q="}, both, Identity},
		"the last element that is read":    {[]string{strings.Repeat("br,", maxElements-1) + "gzip"}, both, Gzip},
		"too many elements":                {[]string{strings.Repeat("br,", maxElements) + "gzip"}, both, Identity},
		"too many elements after a coding": {[]string{"gzip," + strings.Repeat(",", 1<<16)}, both, Identity},
	} {
		t.Run(name, func(t *testing.T) {
			if got := Negotiate(test.lines, test.codes); got != test.want {
				t.Errorf("%q: %v, want %v", test.lines, got, test.want)
			}
		})
	}
}

// Whatever a client sends: it gets no coding that it does not name, unless it sends "*".
func FuzzNegotiate(f *testing.F) {
	for _, seed := range []string{"gzip, zstd;q=0.5", "*;q=0", "identity;q=0,*", "gzip;q=1.0000", ",,,;;;", "x-gzip;q=0."} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, line string) {
		got := Negotiate([]string{line}, []Coding{Zstd, Gzip})
		if got != Identity && !strings.Contains(strings.ToLower(line), got.String()) && !strings.Contains(line, "*") {
			t.Errorf("%q: %v", line, got)
		}
		if got == Zstd && !strings.Contains(strings.ToLower(line), "zstd") {
			t.Errorf("%q: zstd, which the client does not name", line)
		}
		if only := Negotiate([]string{line}, []Coding{Gzip}); only == Zstd {
			t.Errorf("%q: a coding that the route has not got", line)
		}
		if without := Negotiate([]string{line + ", gzip;q=0, zstd;q=0"}, []Coding{Zstd, Gzip}); without != Identity {
			t.Errorf("%q: %v, although it is refused", line, without)
		}
	})
}
