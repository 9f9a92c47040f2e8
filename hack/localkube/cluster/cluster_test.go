package cluster

import (
	"errors"
	"net/netip"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestCheckName(t *testing.T) {
	tests := map[string]bool{
		"slipway":               true,
		"a":                     true,
		"test-2":                true,
		strings.Repeat("a", 40): true,
		strings.Repeat("a", 41): false,
		"":                      false,
		"Slipway":               false,
		"2fast":                 false,
		"dash-":                 false,
		"a/b":                   false,
		"..":                    false,
	}
	for name, valid := range tests {
		if err := CheckName(name); (err == nil) != valid {
			t.Errorf("CheckName(%q) = %v, want valid %t", name, err, valid)
		}
	}
}

func TestAddresses(t *testing.T) {
	c := Cluster{Name: "slipway", Root: "/state", Slot: 7}
	got := []string{
		c.Network().String(), c.PodNetwork().String(), c.ServiceNetwork().String(), c.HostAddress().String(),
		c.NodeAddress().String(), c.APIServiceAddress().String(), c.DNSAddress().String(), c.Server(),
		c.HostInterface(), c.Kubeconfig(), c.NetworkNamespace(), c.LoadBalancerNetwork().String(),
	}
	want := []string{
		"10.207.0.0/16", "10.207.64.0/18", "10.207.128.0/17", "10.207.0.1",
		"10.207.0.2", "10.207.128.1", "10.207.128.10", "https://10.207.0.2:6443",
		"slipway7", "/state/slipway/kubeconfig", "/state/slipway/namespaces/net", "10.207.16.0/20",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("addresses (-want +got):\n%s", diff)
	}
	node := netip.PrefixFrom(c.HostAddress(), 30).Masked()
	parts := []netip.Prefix{node, c.LoadBalancerNetwork(), c.PodNetwork(), c.ServiceNetwork()}
	for index, part := range parts {
		if overlaps(part, parts[index+1:]) || !c.Network().Contains(part.Addr()) {
			t.Errorf("%s overlaps with one of %v, or lies outside of %s", part, parts[index+1:], c.Network())
		}
	}
}

func TestChooseSlot(t *testing.T) {
	preferred := PreferredSlot("slipway")
	taken := func(slots ...int) []netip.Prefix {
		var networks []netip.Prefix
		for _, slot := range slots {
			networks = append(networks, Cluster{Slot: slot % Slots}.Network())
		}
		return networks
	}
	every := make([]int, Slots)
	for slot := range every {
		every[slot] = slot
	}
	tests := map[string]struct {
		used    []netip.Prefix
		want    int
		wantErr bool
	}{
		"nothing used":            {want: preferred},
		"another one used":        {used: taken(preferred + 1), want: preferred},
		"preferred one used":      {used: taken(preferred), want: (preferred + 1) % Slots},
		"two used":                {used: taken(preferred, preferred+1), want: (preferred + 2) % Slots},
		"a part of it used":       {used: []netip.Prefix{netip.PrefixFrom(Cluster{Slot: preferred}.DNSAddress(), 32)}, want: (preferred + 1) % Slots},
		"machine's own network":   {used: []netip.Prefix{netip.MustParsePrefix("192.0.2.0/24")}, want: preferred},
		"everything used":         {used: taken(every...), wantErr: true},
		"a network over them all": {used: []netip.Prefix{netip.MustParsePrefix("10.0.0.0/8")}, wantErr: true},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			got, err := ChooseSlot("slipway", test.used)
			if (err != nil) != test.wantErr || (err == nil && got != test.want) {
				t.Errorf("ChooseSlot = %d, %v, want %d, error %t", got, err, test.want, test.wantErr)
			}
		})
	}
}

func TestSaveAndLoad(t *testing.T) {
	root := t.TempDir()
	if _, err := Load(root, "slipway"); !errors.Is(err, ErrNone) {
		t.Fatalf("Load of a missing cluster = %v, want ErrNone", err)
	}
	saved := Cluster{Name: "slipway", Root: root, Slot: 3, Fsync: true, Programs: map[string]string{"etcd": "/cache/etcd"}, Boot: "boot"}
	if err := saved.Save(); err != nil {
		t.Fatal(err)
	}
	loaded, err := Load(root, "slipway")
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(saved, loaded); diff != "" {
		t.Errorf("loaded (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]string{"10.203.0.0/16"}, text(Networks(root))); diff != "" {
		t.Errorf("networks (-want +got):\n%s", diff)
	}
}

// What a file says never leads outside of the folder that it lies in.
func TestLoadKeepsToItsFolder(t *testing.T) {
	root := t.TempDir()
	record := Cluster{Name: "slipway", Root: root}
	if err := WriteFile(record.Path("cluster.json"), []byte(`{"name":"../../etc","root":"/"}`), 0o644); err != nil {
		t.Fatal(err)
	}
	loaded, err := Load(root, "slipway")
	if err != nil {
		t.Fatal(err)
	}
	if loaded.Folder() != record.Folder() {
		t.Errorf("folder = %s, want %s", loaded.Folder(), record.Folder())
	}
}

func TestLock(t *testing.T) {
	name := "test " + t.TempDir()
	unlock, err := TryLock(name)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := TryLock(name); !errors.Is(err, ErrLocked) {
		t.Errorf("second TryLock = %v, want ErrLocked", err)
	}
	unlock()
	again, err := TryLock(name)
	if err != nil {
		t.Fatalf("TryLock after unlock: %v", err)
	}
	again()
}

func text(networks []netip.Prefix) []string {
	var result []string
	for _, network := range networks {
		result = append(result, network.String())
	}
	return result
}
