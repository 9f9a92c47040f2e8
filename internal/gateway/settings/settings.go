// Package settings has what the operator sets of the pods of a Gateway when it starts them. The operator writes it as arguments,
// and the pods read them. Both know the same words for it, by which a pod says with which settings it serves.
package settings

import (
	"fmt"
	"net/netip"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/pflag"
)

// Settings are those of the pods of one Gateway. The zero value means the defaults.
type Settings struct {
	// TrustedProxies are the address ranges, as CIDR, of the proxies whose X-Forwarded-For and Forwarded headers are believed.
	// Default: none.
	TrustedProxies []string
	// SamplePercent is the share of the requests in the access log, from 0 to 100 percent. Nil: all.
	SamplePercent *int32
	// ProxyProtocol makes every connection begin with a header of the PROXY protocol.
	ProxyProtocol bool
	// ProxyProtocolSources are the address ranges, as CIDR, from which such connections may come. Default: all.
	ProxyProtocolSources []string
}

const (
	trustedProxies       = "trusted-proxies"
	samplePercent        = "access-log-sample-percent"
	proxyProtocol        = "proxy-protocol"
	proxyProtocolSources = "proxy-protocol-sources"
)

// Arguments are those that a program needs to have these settings: none for the defaults. The same settings have the same
// arguments.
func (s Settings) Arguments() []string {
	var list []string
	if len(s.TrustedProxies) > 0 {
		list = append(list, ranges(trustedProxies, s.TrustedProxies))
	}
	if s.SamplePercent != nil {
		list = append(list, fmt.Sprintf("--%s=%d", samplePercent, *s.SamplePercent))
	}
	if s.ProxyProtocol {
		list = append(list, "--"+proxyProtocol)
		if len(s.ProxyProtocolSources) > 0 {
			list = append(list, ranges(proxyProtocolSources, s.ProxyProtocolSources))
		}
	}
	return list
}

// ranges is an argument with address ranges: their order means nothing.
func ranges(flag string, list []string) string {
	return fmt.Sprintf("--%s=%s", flag, strings.Join(slices.Compact(slices.Sorted(slices.Values(list))), ","))
}

// Bind has the settings read from the arguments of a program.
func (s *Settings) Bind(flags *pflag.FlagSet) {
	flags.StringSliceVar(&s.TrustedProxies, trustedProxies, nil, "address ranges of the proxies whose X-Forwarded-For is believed, with --kind=Gateway; the default is none")
	flags.Func(samplePercent, "share of the requests in the access log, from 0 to 100 percent, with --kind=Gateway; the default is all", func(text string) error {
		percent, err := strconv.ParseInt(text, 10, 32)
		if err != nil || percent < 0 || percent > 100 {
			return fmt.Errorf("%q is no number from 0 to 100", text)
		}
		s.SamplePercent = new(int32(percent))
		return nil
	})
	flags.BoolVar(&s.ProxyProtocol, proxyProtocol, false, "every connection begins with a header of the PROXY protocol, with --kind=Gateway")
	flags.StringSliceVar(&s.ProxyProtocolSources, proxyProtocolSources, nil, "address ranges from which connections with --proxy-protocol may come; the default is all")
}

// Sources parses ProxyProtocolSources.
func (s Settings) Sources() ([]netip.Prefix, error) {
	var list []netip.Prefix
	for _, text := range s.ProxyProtocolSources {
		prefix, err := netip.ParsePrefix(text)
		if err != nil {
			return nil, fmt.Errorf("--%s: %w", proxyProtocolSources, err)
		}
		list = append(list, prefix)
	}
	return list, nil
}
