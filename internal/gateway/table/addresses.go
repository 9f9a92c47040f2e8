package table

import (
	"net/netip"

	"github.com/slipway-dev/slipway/internal/gateway/clients"
	"github.com/slipway-dev/slipway/internal/gateway/model"
)

// AddressRule says from which addresses requests are let in. Each is an address or a range in CIDR form.
type AddressRule struct {
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

func compileAddresses(e *compiled, rule *Rule) *model.Fault {
	if rule.ClientAddresses == nil {
		return nil
	}
	addresses := &Addresses{}
	for _, list := range []struct {
		field string
		texts []string
		into  *[]netip.Prefix
	}{
		{"clientAddresses.allow", rule.ClientAddresses.Allow, &addresses.allow},
		{"clientAddresses.deny", rule.ClientAddresses.Deny, &addresses.deny},
	} {
		for _, text := range list.texts {
			prefix, f := parseRange(list.field, text)
			if f != nil {
				return f
			}
			*list.into = append(*list.into, prefix)
		}
	}
	if len(addresses.allow)+len(addresses.deny) == 0 {
		return model.Invalid("clientAddresses: set at least one of allow and deny")
	}
	e.ClientAddresses = addresses
	return nil
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
