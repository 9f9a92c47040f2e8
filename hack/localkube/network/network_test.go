package network

import (
	"net/netip"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/slipway-dev/slipway/hack/localkube/cluster"
)

func TestMountsBelow(t *testing.T) {
	mountinfo := `27 1 254:0 / / rw,relatime - ext4 /dev/vda rw
42 27 254:0 /state/a/namespaces /state/a/namespaces rw - ext4 /dev/vda rw
65 42 0:4 net:[4026532178] /state/a/namespaces/net rw - nsfs nsfs rw
66 42 0:4 mnt:[4026532177] /state/a/namespaces/mnt rw - nsfs nsfs rw
67 27 0:39 / /state/ab rw - tmpfs x rw
68 27 0:40 / /state/a/with\040space rw - tmpfs x rw
69 27 0:41 / /elsewhere/state/a rw - tmpfs x rw

broken line
`
	tests := map[string][]string{
		"/state/a":  {"/state/a/namespaces", "/state/a/namespaces/net", "/state/a/namespaces/mnt", "/state/a/with space"},
		"/state/ab": {"/state/ab"},
		"/state/b":  nil,
	}
	for folder, want := range tests {
		if diff := cmp.Diff(want, mountsBelow([]byte(mountinfo), folder)); diff != "" {
			t.Errorf("mountsBelow(%s) (-want +got):\n%s", folder, diff)
		}
	}
}

func TestUnescape(t *testing.T) {
	tests := map[string]string{
		`/plain`:       "/plain",
		`/a\040b`:      "/a b",
		`/a\134b\011c`: "/a\\b\tc",
		`/end\04`:      `/end\04`,
		`/no\999x`:     `/no\999x`,
	}
	for text, want := range tests {
		if got := unescape(text); got != want {
			t.Errorf("unescape(%q) = %q, want %q", text, got, want)
		}
	}
}

func TestParseRoutes(t *testing.T) {
	output := `[{"dst":"default","gateway":"192.0.2.1"},{"dst":"192.0.2.0/24"},{"type":"local","dst":"127.0.0.1"},{"dst":"10.207.0.0/16"}]`
	got, err := parseRoutes([]byte(output))
	if err != nil {
		t.Fatal(err)
	}
	want := []netip.Prefix{
		netip.MustParsePrefix("192.0.2.0/24"), netip.MustParsePrefix("127.0.0.1/32"), netip.MustParsePrefix("10.207.0.0/16"),
	}
	if diff := cmp.Diff(want, got, cmpopts.EquateComparable(netip.Prefix{})); diff != "" {
		t.Errorf("routes (-want +got):\n%s", diff)
	}
	if _, err := parseRoutes([]byte("no JSON")); err == nil {
		t.Error("no error for what is not JSON")
	}
}

func TestEnter(t *testing.T) {
	c := cluster.Cluster{Name: "a", Root: "/state"}
	want := []string{"nsenter", "--mount=/state/a/namespaces/private/mnt", "--net=/state/a/namespaces/net", "--", "etcd", "--name=a"}
	if diff := cmp.Diff(want, Enter(c, "etcd", "--name=a")); diff != "" {
		t.Errorf("Enter (-want +got):\n%s", diff)
	}
}
