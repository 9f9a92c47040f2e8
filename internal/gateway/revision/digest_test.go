package revision_test

import (
	"testing"

	"github.com/slipway-dev/slipway/internal/gateway/revision"
)

func TestDigestsTellApartWhatClientsSee(t *testing.T) {
	digests := map[string]string{}
	for name, digest := range map[string]string{
		"a route":                 revision.RouteDigest("a", 1),
		"its next generation":     revision.RouteDigest("a", 2),
		"another route":           revision.RouteDigest("b", 1),
		"a listener":              revision.ListenerDigest(80, false, "", nil),
		"another port":            revision.ListenerDigest(81, false, "", nil),
		"with TLS":                revision.ListenerDigest(80, true, "", nil),
		"another hostname":        revision.ListenerDigest(80, false, "a", nil),
		"with a certificate":      revision.ListenerDigest(80, true, "", []string{"team/a@1"}),
		"a renewed certificate":   revision.ListenerDigest(80, true, "", []string{"team/a@2"}),
		"two certificates":        revision.ListenerDigest(80, true, "", []string{"team/a@1", "team/b@1"}),
		"names that run together": revision.ListenerDigest(80, true, "", []string{"team/a@1 team/b@1"}),
	} {
		if other, taken := digests[digest]; taken {
			t.Errorf("%s has the digest of %s", name, other)
		}
		digests[digest] = name
	}
	if a, b := revision.ListenerDigest(80, true, "", []string{"x", "y"}), revision.ListenerDigest(80, true, "", []string{"y", "x"}); a != b {
		t.Errorf("the order of the certificates changes the digest: %s, %s", a, b)
	}
}
