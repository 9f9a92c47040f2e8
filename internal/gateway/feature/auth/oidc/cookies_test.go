package oidc

import (
	"strings"
	"testing"
)

func TestNoBackendGetsOurCookies(t *testing.T) {
	for sent, wanted := range map[string]string{
		"":                                   "",
		"a=b":                                "a=b",
		"a=b; c=d":                           "a=b; c=d",
		"a=b;c=d":                            "a=b;c=d",
		"slipway-oidc-x.s0=1":                "",
		"a=b; slipway-oidc-x.s0=1":           "a=b",
		"__Host-slipway-oidc-x.l0=1":         "",
		"__host-Slipway-OIDC-x.l0=1; a=b":    "a=b",
		"a=b;slipway-oidc-x=1;c=d":           "a=b; c=d",
		"a=b;\tslipway-oidc-x=1; c=d":        "a=b; c=d",
		"a=b, slipway-oidc-x=1; c=d":         "c=d",
		`a="b; slipway-oidc-x=1"`:            `a="b`,
		"slipway-oidc-":                      "",
		"slipway-oidc=1; slipway-affinity=2": "slipway-oidc=1; slipway-affinity=2",
	} {
		if got := Strip(sent); got != wanted {
			t.Errorf("%q: got %q, want %q", sent, got, wanted)
		}
	}
}

// FuzzForBackend divides what a backend gets as its readers may: at semicolons, commas, line ends and quotes, with names in any
// case. None of them finds a cookie of ours, and the cookies of others stay.
func FuzzForBackend(f *testing.F) {
	f.Add("a=b; slipway-oidc-x-s0=1")
	f.Add("a=b,__Host-slipway-oidc-x-s0=1; ;=")
	f.Add("a=\"; SLIPWAY-oidc-x=1\"; c=d")
	f.Fuzz(func(t *testing.T, sent string) {
		got := Strip(sent)
		for part := range strings.FieldsFuncSeq(got, func(r rune) bool { return strings.ContainsRune(";,\"'\r\n\t ", r) }) {
			name, _, _ := strings.Cut(part, "=")
			if isOurs(name) || strings.Contains(strings.ToLower(name), namePrefix) {
				t.Errorf("%q leaves %q", sent, got)
			}
		}
		for pair := range strings.SplitSeq(sent, ";") {
			if pair = strings.Trim(pair, " \t"); !strings.Contains(strings.ToLower(pair), "slipway") && !strings.Contains(got, pair) {
				t.Errorf("%q is missing in %q of %q", pair, got, sent)
			}
		}
	})
}
