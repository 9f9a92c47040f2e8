package render

import (
	"flag"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/slipway-dev/slipway/hack/localkube/cluster"
	"github.com/slipway-dev/slipway/hack/localkube/pki"
)

var update = flag.Bool("update", false, "rewrite the golden files")

// TestFiles compares every file with the golden one. Kubeconfigs hold new
// certificates every time, so of those only the names are compared.
func TestFiles(t *testing.T) {
	root := t.TempDir()
	c := cluster.Cluster{Name: "slipway", Root: root, Slot: 7}
	if err := pki.Ensure(c, time.Now()); err != nil {
		t.Fatal(err)
	}
	values := Values{Cluster: c, CNIPlugins: "/usr/lib/cni", Nameservers: []string{"192.0.2.53", "192.0.2.54"}}
	if err := Files(values); err != nil {
		t.Fatal(err)
	}
	got := rendered(t, c)
	for name, content := range got {
		if strings.HasSuffix(name, ".kubeconfig") {
			continue
		}
		golden := filepath.Join("testdata", filepath.Base(name)+".golden")
		if *update {
			if err := cluster.WriteFile(golden, []byte(content), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		want, err := os.ReadFile(golden)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(string(want), content); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
	for user := range pki.Clients(c) {
		if _, found := got[user+".kubeconfig"]; !found && user != "admin" {
			t.Errorf("no kubeconfig of %s", user)
		}
	}
	kubeconfig, err := os.ReadFile(c.Kubeconfig())
	if err != nil || !strings.Contains(string(kubeconfig), "server: https://10.207.0.2:6443") {
		t.Errorf("the administrator's kubeconfig does not name the server (%v):\n%s", err, kubeconfig)
	}
}

// rendered reads the files back, with a fixed name in the place of the state folder's.
func rendered(t *testing.T, c cluster.Cluster) map[string]string {
	t.Helper()
	got := map[string]string{}
	folder := c.Path("config")
	err := filepath.WalkDir(folder, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		content, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		name, err := filepath.Rel(folder, path)
		if err != nil {
			return err
		}
		switch {
		case strings.HasSuffix(name, ".kubeconfig"):
			got[name] = ""
		case strings.HasPrefix(name, "registries") && name != "registries/localhost_5000_/hosts.toml":
			// All others differ in the port alone.
		default:
			got[name] = strings.ReplaceAll(string(content), c.Root, "/state")
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return got
}

func TestParseNameservers(t *testing.T) {
	tests := map[string]struct {
		content string
		want    []string
	}{
		"two":           {content: "search example.com\nnameserver 192.0.2.53\nnameserver 192.0.2.54\n", want: []string{"192.0.2.53", "192.0.2.54"}},
		"stub":          {content: "nameserver 127.0.0.53\n"},
		"IPv6":          {content: "nameserver fd00::1\nnameserver 192.0.2.53\n", want: []string{"192.0.2.53"}},
		"comment":       {content: "# nameserver 192.0.2.53\n"},
		"no address":    {content: "nameserver\nnameserver example\n"},
		"nothing there": {},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(test.want, parseNameservers([]byte(test.content))); diff != "" {
				t.Errorf("name servers (-want +got):\n%s", diff)
			}
		})
	}
}

// Without a name server there is nobody to forward to, and CoreDNS would refuse
// an empty list.
func TestCorefileWithoutNameservers(t *testing.T) {
	content, err := execute("Corefile", Values{Cluster: cluster.Cluster{Name: "slipway", Root: "/state"}})
	if err != nil {
		t.Fatal(err)
	}
	if strings.Contains(string(content), "forward") {
		t.Errorf("Corefile forwards to nobody:\n%s", content)
	}
}
