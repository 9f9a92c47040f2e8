package document_test

import (
	"testing"

	"github.com/slipway-dev/slipway/internal/gateway/replica/document"
)

func TestDigestsTellApartWhatClientsSee(t *testing.T) {
	digests := map[string]string{}
	for name, digest := range map[string]string{
		"a route":                 document.RouteDigest("a", 1),
		"its next generation":     document.RouteDigest("a", 2),
		"another route":           document.RouteDigest("b", 1),
		"a listener":              document.ListenerDigest(80, false, "", nil),
		"another port":            document.ListenerDigest(81, false, "", nil),
		"with TLS":                document.ListenerDigest(80, true, "", nil),
		"another hostname":        document.ListenerDigest(80, false, "a", nil),
		"with a certificate":      document.ListenerDigest(80, true, "", []string{"team/a@1"}),
		"a renewed certificate":   document.ListenerDigest(80, true, "", []string{"team/a@2"}),
		"two certificates":        document.ListenerDigest(80, true, "", []string{"team/a@1", "team/b@1"}),
		"names that run together": document.ListenerDigest(80, true, "", []string{"team/a@1 team/b@1"}),
	} {
		if other, taken := digests[digest]; taken {
			t.Errorf("%s has the digest of %s", name, other)
		}
		digests[digest] = name
	}
	if a, b := document.ListenerDigest(80, true, "", []string{"x", "y"}), document.ListenerDigest(80, true, "", []string{"y", "x"}); a != b {
		t.Errorf("the order of the certificates changes the digest: %s, %s", a, b)
	}
}
