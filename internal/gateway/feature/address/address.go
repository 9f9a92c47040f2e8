// Package address says from which addresses requests are let in. It is pure.
package address

import (
	"net/netip"

	"github.com/slipway-dev/slipway/internal/gateway/clients"
	"github.com/slipway-dev/slipway/internal/gateway/model"
)

// Rule says from which addresses requests are let in. Each is an address or a range in CIDR form.
type Rule struct {
	// Allow are those that are let in. Empty: all that Deny does not name.
	Allow []string
	// Deny are those that are not, whatever Allow says.
	Deny []string
}

// Addresses are the addresses from which requests are let in. The zero value lets in every known one.
type Addresses struct {
	allow, deny []netip.Prefix
}

// Admit reports whether requests of a client are let in. One whose address is not known, the zero address, never is.
func (a *Addresses) Admit(client netip.Addr) bool {
	if !client.IsValid() || clients.Within(a.deny, client) {
		return false
	}
	return len(a.allow) == 0 || clients.Within(a.allow, client)
}

// parseRange reads an address or a range. An IPv4 address that is written as an IPv6 one is refused: clients are compared as IPv4,
// so it would never fit.
func parseRange(field, text string) (netip.Prefix, *model.Fault) {
	prefix, err := netip.ParsePrefix(text)
	if err != nil {
		address, err := netip.ParseAddr(text)
		if err != nil || address.Zone() != "" {
			return netip.Prefix{}, model.Invalid("%s: %q is neither an address nor a range such as 10.0.0.0/8", field, text)
		}
		prefix = netip.PrefixFrom(address, address.BitLen())
	}
	if embedded := netip.MustParsePrefix("::ffff:0:0/96"); prefix.Addr().Is4In6() || prefix.Bits() > 0 && prefix.Overlaps(embedded) {
		return netip.Prefix{}, model.Invalid("%s: %q: write IPv4 addresses as such", field, text)
	}
	return prefix.Masked(), nil
}
