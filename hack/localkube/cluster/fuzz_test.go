package cluster

import (
	"net/netip"
	"path/filepath"
	"strings"
	"testing"
)

// An allowed name is a single element of every path that is made of it.
func FuzzCheckName(f *testing.F) {
	for _, name := range []string{"slipway", "a", "", "..", "a/b", "a-", strings.Repeat("a", 40), strings.Repeat("a", 41), "a\n"} {
		f.Add(name)
	}
	f.Fuzz(func(t *testing.T, name string) {
		if CheckName(name) != nil {
			return
		}
		c := Cluster{Name: name, Root: "/state"}
		if filepath.Dir(c.Folder()) != "/state" || filepath.Base(c.Folder()) != name || strings.Count(c.Cgroup(), "/") != 1 || strings.ContainsAny(name, " \n%") {
			t.Errorf("%q leads to %q and %q", name, c.Folder(), c.Cgroup())
		}
	})
}

// A new cluster gets a network that nobody uses, as long as there is one.
func FuzzChooseSlot(f *testing.F) {
	f.Add("slipway", []byte{})
	f.Add("slipway", []byte{10, 200, 0, 0, 8})
	f.Add("test", []byte{10, 203, 0, 0, 16, 10, 249, 1, 2, 32, 192, 168, 0, 0, 24})
	f.Fuzz(func(t *testing.T, name string, data []byte) {
		var used []netip.Prefix
		for ; len(data) >= 5; data = data[5:] {
			used = append(used, netip.PrefixFrom(netip.AddrFrom4([4]byte(data)), int(data[4])%33))
		}
		free := 0
		for slot := range Slots {
			if !overlaps(Cluster{Slot: slot}.Network(), used) {
				free++
			}
		}
		slot, err := ChooseSlot(name, used)
		if (err == nil) != (free > 0) {
			t.Fatalf("%d networks are free of %v: %v", free, used, err)
		}
		if err != nil {
			return
		}
		c := Cluster{Slot: slot}
		if slot < 0 || slot >= Slots || overlaps(c.Network(), used) || overlaps(c.PodNetwork(), []netip.Prefix{c.ServiceNetwork()}) {
			t.Errorf("slot %d with %v, in use are %v", slot, c.Network(), used)
		}
		if again, _ := ChooseSlot(name, used); again != slot {
			t.Errorf("slot %d, and then %d", slot, again)
		}
	})
}
