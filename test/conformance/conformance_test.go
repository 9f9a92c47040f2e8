//go:build conformance

package conformance

import (
	"flag"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"sigs.k8s.io/gateway-api/conformance"
	confv1 "sigs.k8s.io/gateway-api/conformance/apis/v1"
	"sigs.k8s.io/gateway-api/conformance/tests"
	"sigs.k8s.io/gateway-api/conformance/utils/config"
	"sigs.k8s.io/gateway-api/conformance/utils/suite"
	"sigs.k8s.io/gateway-api/pkg/features"
	"sigs.k8s.io/yaml"
)

// The suite's own flags work as well, such as -debug and -fail-fast.
var (
	channel  = flag.String("channel", features.FeatureChannelExperimental, "channel of the CRDs that are installed: standard or experimental")
	coreOnly = flag.Bool("core", false, "run only the core tests of the profiles")
	only     = flag.String("only", "", "short names of the tests to run, separated by commas or spaces; no report is written then")
	longest  = flag.Duration("wait", 0, "the longest that the suite may wait for anything; 0 leaves its own limits, which are 10 s to 5 min")
	reports  = flag.String("reports", "", "folder for the report")
)

// TestConformance is the suite itself, with the tests that apply. Each is a subtest of its short name.
func TestConformance(t *testing.T) {
	options := conformance.DefaultOptions(t)
	options.GatewayClassName = "slipway"
	// The suite's own flag -supported-features tries features that are not claimed yet.
	if len(options.SupportedFeatures) == 0 {
		options.SupportedFeatures = claimed(*channel, !*coreOnly)
	}
	if len(options.ConformanceProfiles) == 0 {
		options.ConformanceProfiles = []suite.ConformanceProfileName{
			suite.GatewayHTTPConformanceProfileName, suite.GatewayGRPCConformanceProfileName,
			suite.GatewayTLSConformanceProfileName, suite.GatewayTCPConformanceProfileName, suite.GatewayUDPConformanceProfileName,
		}
	}
	// Who the implementation is goes into the report. The flag -version says which one.
	options.Implementation.Organization = "slipway-dev"
	options.Implementation.Project = "slipway"
	options.Implementation.URL = "https://github.com/slipway-dev/slipway"
	options.Implementation.Contact = []string{"https://github.com/slipway-dev/slipway/issues"}
	if *longest > 0 {
		limit(&options.TimeoutConfig, *longest)
	}

	options.ManifestFS = append(options.ManifestFS, ownManifests)
	options.Hook = progress()
	run, err := suite.NewConformanceTestSuite(options)
	if err != nil {
		t.Fatal(err)
	}
	names := strings.FieldsFunc(*only, func(r rune) bool { return r == ',' || r == ' ' })
	suites, owns := choose(t, names, run.SupportedFeatures)
	finished := false
	// The suite tells its results once everything that it registers after this has ended.
	t.Cleanup(func() {
		if finished && *only == "" && *reports != "" {
			report(t, run)
		}
	})
	run.Setup(t, suites)
	if err := run.Run(t, suites); err != nil {
		t.Fatal(err)
	}
	finished = true
	for _, test := range owns {
		t.Run(test.ShortName, func(t *testing.T) { test.Run(t, run) })
	}
}

// choose returns the tests of the suite and ours, those that were named or else all, without those of features that are not
// claimed. The suite would only skip them, and its report does not mention them.
func choose(t *testing.T, names []string, supported suite.FeaturesSet) (ofSuite, ours []suite.ConformanceTest) {
	t.Helper()
	left := slices.Clone(names)
	pick := func(from []suite.ConformanceTest) []suite.ConformanceTest {
		var chosen []suite.ConformanceTest
		for _, test := range from {
			named := slices.Contains(names, test.ShortName)
			left = slices.DeleteFunc(left, func(name string) bool { return name == test.ShortName })
			switch {
			case supported.HasAll(test.Features...) && (named || len(names) == 0):
				chosen = append(chosen, test)
			case named:
				t.Fatalf("%s needs the features %v, and not all are claimed", test.ShortName, test.Features)
			}
		}
		return chosen
	}
	ofSuite, ours = pick(tests.ConformanceTests), pick(own)
	if len(left) > 0 {
		t.Fatalf("there are no tests of these names: %s", strings.Join(left, ", "))
	}
	return ofSuite, ours
}

// report writes the file that implementations submit, under the name that it has to have. When core tests ran alone, or a
// profile, it is none of these.
func report(t *testing.T, run *suite.ConformanceTestSuite) {
	result, err := run.Report()
	if err != nil {
		t.Fatal(err)
	}
	slices.SortFunc(result.ProfileReports, func(a, b confv1.ProfileReport) int { return strings.Compare(a.Name, b.Name) })
	content, err := yaml.Marshal(result)
	if err != nil {
		t.Fatal(err)
	}
	name := strings.Join([]string{result.GatewayAPIChannel, result.Version, result.Mode, "report.yaml"}, "-")
	if *coreOnly || len(result.ProfileReports) < 2 {
		name = "partial-report.yaml"
	}
	if err := os.MkdirAll(*reports, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(*reports, name), content, 0o644); err != nil {
		t.Fatal(err)
	}
	for _, profile := range result.ProfileReports {
		t.Logf("measured: %s: %s", profile.Name, profile.Summary)
	}
}

// progress says how each test of the suite has ended, while the run goes on. hack/testsum shows lines that say "measured".
func progress() func(*testing.T, suite.ConformanceTest, *suite.ConformanceTestSuite) {
	started := time.Now()
	return func(t *testing.T, _ suite.ConformanceTest, _ *suite.ConformanceTestSuite) {
		result := "passed"
		if t.Failed() {
			result = "failed"
		}
		t.Logf("measured: %s %.1f s after the start", result, time.Since(started).Seconds())
	}
}

// limit lowers every limit of the suite to the longest that it may wait.
func limit(c *config.TimeoutConfig, longest time.Duration) {
	for _, one := range []*time.Duration{
		&c.CreateTimeout, &c.DeleteTimeout, &c.GetTimeout, &c.GatewayMustHaveAddress, &c.GatewayMustHaveCondition,
		&c.GatewayStatusMustHaveListeners, &c.GatewayListenersMustHaveConditions, &c.ListenerSetMustHaveCondition,
		&c.ListenerSetListenersMustHaveConditions, &c.GWCMustBeAccepted, &c.HTTPRouteMustNotHaveParents,
		&c.HTTPRouteMustHaveCondition, &c.TLSRouteMustHaveCondition, &c.TCPRouteMustHaveCondition,
		&c.UDPRouteMustHaveCondition, &c.RouteMustHaveParents, &c.ManifestFetchTimeout, &c.MaxTimeToConsistency,
		&c.NamespacesMustBeReady, &c.RequestTimeout, &c.LatestObservedGenerationSet, &c.DefaultTestTimeout,
	} {
		*one = min(*one, longest)
	}
}
