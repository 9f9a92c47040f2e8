package settings_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/spf13/pflag"

	"github.com/slipway-dev/slipway/internal/gateway/settings"
)

// What the operator says is what a pod reads, and what it says it serves with.
func TestArgumentsAreReadAsTheyWereWritten(t *testing.T) {
	for name, tc := range map[string]struct {
		written settings.Settings
		args    []string
	}{
		"nothing": {settings.Settings{}, nil},
		"everything": {
			settings.Settings{TrustedProxies: []string{"10.0.0.0/8", "fd00::/8"}, SamplePercent: new(int32(0)), ProxyProtocol: true, ProxyProtocolSources: []string{"192.0.2.7/32"}},
			[]string{"--trusted-proxies=10.0.0.0/8,fd00::/8", "--access-log-sample-percent=0", "--proxy-protocol", "--proxy-protocol-sources=192.0.2.7/32"},
		},
		"ranges in another order, and twice": {
			settings.Settings{TrustedProxies: []string{"fd00::/8", "10.0.0.0/8", "fd00::/8"}},
			[]string{"--trusted-proxies=10.0.0.0/8,fd00::/8"},
		},
		"sources of nothing": {settings.Settings{ProxyProtocolSources: []string{"10.0.0.0/8"}}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			args := tc.written.Arguments()
			if diff := cmp.Diff(tc.args, args); diff != "" {
				t.Fatal(diff)
			}
			var read settings.Settings
			flags := pflag.NewFlagSet("", pflag.ContinueOnError)
			read.Bind(flags)
			if err := flags.Parse(args); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(args, read.Arguments()); diff != "" {
				t.Errorf("it says that it serves with others: %s", diff)
			}
			if read.ProxyProtocol != tc.written.ProxyProtocol {
				t.Errorf("got %+v", read)
			}
		})
	}
}

func TestASourceThatIsNoRangeIsAnError(t *testing.T) {
	if list, err := (settings.Settings{ProxyProtocolSources: []string{"10.0.0.0/8", "here"}}).Sources(); err == nil {
		t.Errorf("got %v", list)
	}
}

func TestAShareThatIsNoPercentageIsAnError(t *testing.T) {
	for _, text := range []string{"101", "-1", "", "many", "1.5"} {
		var read settings.Settings
		flags := pflag.NewFlagSet("", pflag.ContinueOnError)
		read.Bind(flags)
		if err := flags.Parse([]string{"--access-log-sample-percent=" + text}); err == nil {
			t.Errorf("%q is read as %d", text, *read.SamplePercent)
		}
	}
}
