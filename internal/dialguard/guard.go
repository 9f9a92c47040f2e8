// Package dialguard keeps addresses that a user names by a URL from leading into the program's own pod or machine, or to the metadata
// of a cloud. It looks at the address that is dialed, so no name, redirect or other spelling gets around it.
package dialguard

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"syscall"
	"time"
)

// ErrRefused is the error of an address that must not be dialed.
var ErrRefused = errors.New("a user's address must not lead there")

// dialTimeout bounds a connection. Callers have shorter ones.
const dialTimeout = 30 * time.Second

// Guard decides what may be dialed. A nil Guard is one without exceptions. Pods and Services of a cluster are never refused, but for
// the own pod.
type Guard struct {
	// Allowed are exceptions, as whoever runs the program says them. No user may.
	Allowed []netip.Prefix
	// Own tells which ports of the pod itself may be dialed: it may be a backend like other pods. Nil: none.
	Own func(port uint16) bool
}

// kind is a kind of addresses to which nobody may lead a request.
type kind struct {
	name string
	is   func(netip.Addr) bool
}

var kinds = []kind{
	{"the machine itself", func(a netip.Addr) bool { return a.IsLoopback() || a.IsUnspecified() || thisNetwork.Contains(a) }},
	{"the link", func(a netip.Addr) bool {
		return a.IsLinkLocalUnicast() || a.IsLinkLocalMulticast() || a.IsInterfaceLocalMulticast()
	}},
	{"a group of machines", func(a netip.Addr) bool { return a.IsMulticast() || a == broadcast }},
	{"behind a translator of the site", localNAT64.Contains},
	{"the metadata of a cloud", func(a netip.Addr) bool { return metadata[a] }},
}

var (
	thisNetwork = netip.MustParsePrefix("0.0.0.0/8")
	broadcast   = netip.MustParseAddr("255.255.255.255")

	// metadata are the addresses that are not of the link: AWS over IPv6, Google over IPv6, Alibaba, Azure's host, and Oracle's older one.
	metadata = map[netip.Addr]bool{
		netip.MustParseAddr("fd00:ec2::254"): true, netip.MustParseAddr("fd00:ec2::23"): true, netip.MustParseAddr("fd20:ce::254"): true,
		netip.MustParseAddr("100.100.100.200"): true, netip.MustParseAddr("168.63.129.16"): true, netip.MustParseAddr("192.0.0.192"): true,
	}

	// translated are the prefixes of IPv6 behind which the last four bytes are an IPv4 address: of old, of SIIT, and of NAT64.
	translated = []netip.Prefix{
		netip.MustParsePrefix("::/96"), netip.MustParsePrefix("::ffff:0:0:0/96"), netip.MustParsePrefix("64:ff9b::/96"),
	}
	// localNAT64 is for translators of a site. Where the IPv4 address is depends on their own prefix, so it is not known.
	localNAT64 = netip.MustParsePrefix("64:ff9b:1::/48")
	sixToFour  = netip.MustParsePrefix("2002::/16")
)

// Check returns an error that is ErrRefused if the address must not be dialed.
func (g *Guard) Check(at netip.AddrPort) error {
	address := at.Addr().Unmap().WithZone("")
	if g.allows(address) {
		return nil
	}
	for _, means := range append(embedded(address), address) {
		if g.allows(means) {
			continue
		}
		for _, k := range kinds {
			if k.is(means) {
				return fmt.Errorf("%w: %s is %s", ErrRefused, address, k.name)
			}
		}
		if g.takesOwn(at.Port()) {
			continue
		}
		if own, err := isOwn(means); own || err != nil {
			return fmt.Errorf("%w: %s is this pod", ErrRefused, at)
		}
	}
	return nil
}

func (g *Guard) takesOwn(port uint16) bool { return g != nil && g.Own != nil && g.Own(port) }

func (g *Guard) allows(address netip.Addr) bool {
	if g == nil {
		return false
	}
	for _, prefix := range g.Allowed {
		if prefix.Contains(address) {
			return true
		}
	}
	return false
}

// embedded returns the IPv4 address to which a translator would send what is for an IPv6 address.
func embedded(address netip.Addr) []netip.Addr {
	if !address.Is6() {
		return nil
	}
	bytes := address.As16()
	if sixToFour.Contains(address) {
		return []netip.Addr{netip.AddrFrom4([4]byte(bytes[2:6]))}
	}
	for _, prefix := range translated {
		if prefix.Contains(address) {
			return []netip.Addr{netip.AddrFrom4([4]byte(bytes[12:16]))}
		}
	}
	return nil
}

// isOwn reports whether an address is one of this pod. Addresses of pods may change, so they are looked up each time.
func isOwn(address netip.Addr) (bool, error) {
	own, err := net.InterfaceAddrs()
	if err != nil {
		return false, err
	}
	for _, one := range own {
		if network, ok := one.(*net.IPNet); ok {
			if ip, ok := netip.AddrFromSlice(network.IP); ok && ip.Unmap() == address {
				return true, nil
			}
		}
	}
	return false, nil
}

// control is for net.Dialer.Control, which gets the address after its name was resolved.
func (g *Guard) control(_, address string, _ syscall.RawConn) error {
	resolved, err := netip.ParseAddrPort(address)
	if err != nil {
		return fmt.Errorf("%w: %s is no address", ErrRefused, address)
	}
	return g.Check(resolved)
}

// DialContext connects to what may be dialed, over TCP or UDP. It is for http.Transport.
func (g *Guard) DialContext(ctx context.Context, network, address string) (net.Conn, error) {
	dialer := net.Dialer{Timeout: dialTimeout, Control: g.control}
	return dialer.DialContext(ctx, network, address)
}

// DialTCP connects to an address over TCP.
func (g *Guard) DialTCP(ctx context.Context, address string) (net.Conn, error) {
	return g.DialContext(ctx, "tcp", address)
}

// Proxy is http.ProxyFromEnvironment for http.Transport. A proxy resolves names itself, so for those it has to refuse. An address that
// is none to begin with is refused here.
func (g *Guard) Proxy(request *http.Request) (*url.URL, error) {
	through, err := http.ProxyFromEnvironment(request)
	if err != nil || through == nil {
		return through, err
	}
	return through, g.checkHost(request.URL.Hostname())
}

func (g *Guard) checkHost(host string) error {
	if address, err := netip.ParseAddr(host); err == nil {
		return g.Check(netip.AddrPortFrom(address, 0))
	}
	return nil // a name
}
