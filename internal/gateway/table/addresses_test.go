package table_test

import (
	"net/netip"
	"strings"
	"testing"

	"github.com/slipway-dev/slipway/internal/gateway/feature/address"
	"github.com/slipway-dev/slipway/internal/gateway/feature/list"
	"github.com/slipway-dev/slipway/internal/gateway/model"
	"github.com/slipway-dev/slipway/internal/gateway/table"
)

// admits compiles a rule with these addresses.
func admits(t *testing.T, rule address.Rule) (*address.Addresses, []model.Problem) {
	t.Helper()
	compiled, problems := oneListener(table.Input{Rules: []table.Rule{{Direct: answer, Settings: list.Settings{ClientAddresses: &rule}}}})
	return compiled.Routes[0].ClientAddresses, problems
}

func TestWhichClientsAreLetIn(t *testing.T) {
	office := []string{"192.0.2.0/24", "2001:db8::/32", "198.51.100.7"}
	for name, tc := range map[string]struct {
		rule    address.Rule
		in, out []string
	}{
		"those that are allowed": {
			address.Rule{Allow: office},
			[]string{"192.0.2.0", "192.0.2.255", "::ffff:192.0.2.1", "2001:db8::1", "2001:db8::1%eth0", "198.51.100.7"},
			[]string{"192.0.3.0", "::ffff:192.0.3.0", "2001:db9::1", "198.51.100.8", "::192.0.2.1"},
		},
		"all but those that are denied": {
			address.Rule{Deny: office},
			[]string{"192.0.3.0", "2001:db9::1"},
			[]string{"192.0.2.1", "::ffff:192.0.2.1", "2001:db8::1", "2001:db8::1%eth0", "198.51.100.7"},
		},
		"denied counts more": {
			address.Rule{Allow: []string{"10.0.0.0/8"}, Deny: []string{"10.1.0.0/16"}},
			[]string{"10.2.0.1"},
			[]string{"10.1.2.3", "::ffff:10.1.2.3", "11.0.0.1"},
		},
		"all of IPv4":                    {address.Rule{Allow: []string{"0.0.0.0/0"}}, []string{"1.2.3.4", "::ffff:1.2.3.4"}, []string{"::1"}},
		"all of IPv6":                    {address.Rule{Allow: []string{"::/0"}}, []string{"::1"}, []string{"1.2.3.4", "::ffff:1.2.3.4"}},
		"a range that begins in between": {address.Rule{Allow: []string{"10.1.2.3/8"}}, []string{"10.0.0.1"}, []string{"11.1.2.3"}},
	} {
		t.Run(name, func(t *testing.T) {
			addresses, problems := admits(t, tc.rule)
			if len(problems) > 0 {
				t.Fatal(problems)
			}
			for _, text := range tc.in {
				if !addresses.Admit(netip.MustParseAddr(text)) {
					t.Errorf("%s is kept out", text)
				}
			}
			for _, text := range tc.out {
				if addresses.Admit(netip.MustParseAddr(text)) {
					t.Errorf("%s is let in", text)
				}
			}
			if addresses.Admit(netip.Addr{}) {
				t.Error("a client is let in whose address is not known")
			}
		})
	}
}

func TestAddressesThatWouldNeverFitAreRefused(t *testing.T) {
	for _, text := range []string{"", "10.0.0", "10.0.0.0/33", "::ffff:10.0.0.1", "::ffff:10.0.0.0/104", "::/32", "fe80::1%eth0", "10.0.0.1/", "all", "010.0.0.1"} {
		_, problems := admits(t, address.Rule{Deny: []string{text}})
		if len(problems) != 1 || !strings.HasPrefix(problems[0].Message, "clientAddresses.deny: ") {
			t.Errorf("%q: problems %v", text, problems)
		}
	}
}

// FuzzAddresses: no client is let in that one of the denied ranges contains, however its address is written, and nobody beside
// the allowed ones.
func FuzzAddresses(f *testing.F) {
	f.Add("10.0.0.0/8", "10.1.0.0/16", "::ffff:10.1.2.3")
	f.Add("::/0", "2001:db8::/32", "2001:db8::1%0")
	f.Add("0.0.0.0/0", "1.2.3.4", "1.2.3.4")
	f.Fuzz(func(t *testing.T, allow, deny, client string) {
		from, err := netip.ParseAddr(client)
		addresses, problems := admits(t, address.Rule{Allow: []string{allow}, Deny: []string{deny}})
		if err != nil || len(problems) > 0 || !addresses.Admit(from) {
			return
		}
		// The reference counts bits.
		plain := from.Unmap().WithZone("")
		if contains(deny, plain) || !contains(allow, plain) {
			t.Errorf("%s is let in by allow %s and deny %s", client, allow, deny)
		}
	})
}

// contains compares the bits of an address with those of a range.
func contains(text string, address netip.Addr) bool {
	prefix, err := netip.ParsePrefix(text)
	if err != nil {
		only := netip.MustParseAddr(text)
		prefix = netip.PrefixFrom(only, only.BitLen())
	}
	a, b := address.AsSlice(), prefix.Addr().AsSlice()
	if len(a) != len(b) {
		return false
	}
	for bit := range prefix.Bits() {
		if mask := byte(0x80) >> (bit % 8); a[bit/8]&mask != b[bit/8]&mask {
			return false
		}
	}
	return true
}
