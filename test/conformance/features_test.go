package conformance

import (
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/util/sets"
	"sigs.k8s.io/gateway-api/pkg/features"
)

// Every extended feature of the suite is claimed or listed as missing, so a new version of the suite that brings one makes this
// fail.
func TestEveryFeatureIsSupportedOrMissing(t *testing.T) {
	known := sets.New[features.FeatureName]()
	for _, group := range []sets.Set[features.Feature]{
		features.GatewayExtendedFeatures, features.HTTPRouteExtendedFeatures, features.GRPCRouteExtendedFeatures,
		features.BackendTLSPolicyCoreFeatures, features.BackendTLSPolicyExtendedFeatures,
		features.TLSRouteCoreFeatures, features.TLSRouteExtendedFeatures, features.TCPRouteExtendedFeatures, features.UDPRouteFeatures,
	} {
		known = known.Union(features.SetsToNamesSet(group))
	}
	listed := slices.Concat(supported, missing)
	slices.Sort(listed)
	if diff := cmp.Diff(sets.List(known), listed); diff != "" {
		t.Errorf("extended features (-known to the suite +listed here):\n%s", diff)
	}
}

func TestClaimed(t *testing.T) {
	tests := map[string]struct {
		channel  string
		extended bool
		with     []features.FeatureName
		without  []features.FeatureName
	}{
		"core": {
			channel: features.FeatureChannelExperimental,
			with:    slices.Concat(core, refusable),
			without: slices.DeleteFunc(slices.Concat(supported, missing), func(name features.FeatureName) bool { return slices.Contains(refusable, name) }),
		},
		"standard": {
			channel: features.FeatureChannelStandard, extended: true,
			with:    append(slices.Clone(core), features.SupportHTTPRouteMethodMatching, features.SupportTLSRouteModeMixed),
			without: append(slices.Clone(missing), features.SupportHTTPRouteDestinationPortMatching),
		},
		"experimental": {
			channel: features.FeatureChannelExperimental, extended: true,
			with: slices.Concat(core, supported), without: missing,
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			got := sets.New(claimed(test.channel, test.extended)...)
			if lacking := sets.New(test.with...).Difference(got); lacking.Len() > 0 {
				t.Errorf("not claimed: %v", sets.List(lacking))
			}
			if wrong := got.Intersection(sets.New(test.without...)); wrong.Len() > 0 {
				t.Errorf("claimed: %v", sets.List(wrong))
			}
		})
	}
}
