package backup

import (
	"strings"
	"testing"
	"time"
	"unicode"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clocktesting "k8s.io/utils/clock/testing"

	slipwayv1alpha1 "github.com/slipway-dev/slipway/api/v1alpha1"
	"github.com/slipway-dev/slipway/internal/kit/outcome"
)

// wrongSpecs are mistakes that the schema lets pass, with what an answer to each has to say.
var wrongSpecs = map[string]struct {
	change func(*slipwayv1alpha1.BackupSpec)
	says   []string
}{
	"words":                    {scheduled("every day"), []string{"spec.schedule", `"0 2 * * *"`}},
	"six fields":               {scheduled("0 0 2 * * *"), []string{"spec.schedule", "6 fields", "five: minute, hour"}},
	"four fields":              {scheduled("0 2 * *"), []string{"spec.schedule", "4 fields"}},
	"a zone in the expression": {scheduled("TZ=Europe/Berlin 0 2 * * *"), []string{"spec.schedule", "use the field timeZone"}},
	"a cron zone":              {scheduled("CRON_TZ=UTC 0 2 * * *"), []string{"spec.schedule", "use the field timeZone"}},
	"31 February":              {scheduled("0 0 31 2 *"), []string{"spec.schedule", "never fires"}},
	"a delay":                  {scheduled("@every 1h"), []string{"spec.schedule", `"*/30 * * * *"`}},
	"an hour that is none":     {scheduled("0 24 * * *"), []string{"spec.schedule", "above maximum"}},
	"what turns a line around": {scheduled("0 2 * * \u202e\x1b[2J"), []string{"spec.schedule"}},
	"a zone that is none":      {func(s *slipwayv1alpha1.BackupSpec) { s.TimeZone = "Europe/Atlantis" }, []string{"spec.timeZone", "such as Europe/Berlin"}},
	"the machine's zone":       {func(s *slipwayv1alpha1.BackupSpec) { s.TimeZone = "Local" }, []string{"spec.timeZone"}},
	"a path as a zone":         {func(s *slipwayv1alpha1.BackupSpec) { s.TimeZone = "../../etc/passwd" }, []string{"spec.timeZone"}},
	"a drill in words":         {drilled("every week"), []string{"spec.verify.drill.schedule", `"0 2 * * *"`}},
	"a drill on 31 February":   {drilled("0 0 31 2 *"), []string{"spec.verify.drill.schedule", "never fires"}},
	"a zone in the drill's":    {drilled("TZ=UTC 0 2 * * *"), []string{"spec.verify.drill.schedule", "use the field timeZone"}},
	"a unit twice":             {keeping("1d1d"), []string{"spec.retentionPolicy", "twice"}},
	"no time at all":           {keeping("0d"), []string{"spec.retentionPolicy", "0"}},
	"a number with 0 before":   {keeping("030d"), []string{"spec.retentionPolicy", "begins with 0"}},
	"a number that is too big": {keeping("99999d"), []string{"spec.retentionPolicy", "9999"}},
	"an open class": {
		func(s *slipwayv1alpha1.BackupSpec) { s.Exclude = []string{"*.tmp", "a/[b"} },
		[]string{"spec.exclude", "a/[b", "such as *.tmp"},
	},
	"an empty element": {func(s *slipwayv1alpha1.BackupSpec) { s.Exclude = []string{"a//b"} }, []string{"spec.exclude", "a//b"}},
	"the source's own claim": {
		func(s *slipwayv1alpha1.BackupSpec) { s.Destination = "pvc://shop-data/backups" },
		[]string{"spec.destination", "pvc://shop-data", "spec.source"},
	},
	"variables of a dump in a circle": {
		func(s *slipwayv1alpha1.BackupSpec) {
			s.Dump = &slipwayv1alpha1.BackupDump{Env: map[string]slipwayv1alpha1.EnvValue{"A": "$(B)", "B": "$(A)"}}
		},
		[]string{"spec.dump.env", "A and B refer to each other"},
	},
	"a claim that cannot be": {func(s *slipwayv1alpha1.BackupSpec) { s.Source = "pvc/a..b" }, []string{"spec.source"}},
	"a bucket that cannot be": {
		func(s *slipwayv1alpha1.BackupSpec) { s.Destination = "s3://a..b/c" },
		[]string{"spec.destination", "s3://a..b/c"},
	},
}

func scheduled(expression string) func(*slipwayv1alpha1.BackupSpec) {
	return func(s *slipwayv1alpha1.BackupSpec) { s.Schedule = expression }
}

func drilled(expression string) func(*slipwayv1alpha1.BackupSpec) {
	return func(s *slipwayv1alpha1.BackupSpec) {
		s.Verify = &slipwayv1alpha1.BackupVerify{Drill: &slipwayv1alpha1.BackupDrill{Schedule: expression}}
	}
}

func keeping(policy string) func(*slipwayv1alpha1.BackupSpec) {
	return func(s *slipwayv1alpha1.BackupSpec) { s.RetentionPolicy = policy }
}

// wrong is a Backup with a mistake.
func wrong(change func(*slipwayv1alpha1.BackupSpec)) *slipwayv1alpha1.Backup {
	return nightly(func(b *slipwayv1alpha1.Backup) {
		b.Name, b.Spec.Source, b.Spec.Destination = "shop", "shop-data", "s3://bucket/prefix"
		change(&b.Spec)
	})
}

func at1() *validator {
	return &validator{clock: clocktesting.NewFakePassiveClock(time.Date(2026, 5, 1, 1, 0, 0, 0, time.UTC))}
}

// Where nobody asks the webhook, a reconcile says the same, and does nothing.
func TestWebhookAndReconcileRefuseTheSame(t *testing.T) {
	for name, tc := range wrongSpecs {
		t.Run(name, func(t *testing.T) {
			backup := wrong(tc.change)
			_, refused := at1().ValidateCreate(t.Context(), backup)
			if !apierrors.IsInvalid(refused) {
				t.Fatalf("the webhook answers %v", refused)
			}
			s := &scope{backup: backup}
			worst := outcome.Worst(s.check(created))
			if worst == nil || worst.Kind != outcome.Invalid || worst.Reason != slipwayv1alpha1.ReasonInvalid {
				t.Fatalf("a reconcile says %+v", worst)
			}
			for _, answer := range []string{refused.Error(), worst.Message} {
				for _, want := range tc.says {
					if !strings.Contains(answer, want) {
						t.Errorf("the answer %q does not say %q", answer, want)
					}
				}
				if strings.ContainsFunc(answer, func(r rune) bool { return !unicode.IsPrint(r) }) {
					t.Errorf("the answer %q has characters that are not printed", answer)
				}
			}
		})
	}
	if found := problems(&wrong(func(*slipwayv1alpha1.BackupSpec) {}).Spec); len(found) > 0 {
		t.Errorf("what is right is refused: %v", found)
	}
}

func TestOnlyWhatAnUpdateBringsInIsRefused(t *testing.T) {
	bad := wrong(scheduled("0 0 31 2 *"))
	for name, tc := range map[string]struct {
		change  func(*slipwayv1alpha1.Backup)
		refused bool
	}{
		"a label":                {func(b *slipwayv1alpha1.Backup) { b.Labels = map[string]string{"a": "b"} }, false},
		"another field":          {func(b *slipwayv1alpha1.Backup) { b.Spec.Suspend = true }, false},
		"the mistake is mended":  {func(b *slipwayv1alpha1.Backup) { b.Spec.Schedule = "0 2 * * *" }, false},
		"another mistake beside": {func(b *slipwayv1alpha1.Backup) { b.Spec.RetentionPolicy = "0d" }, true},
		"another for this one":   {func(b *slipwayv1alpha1.Backup) { b.Spec.Schedule = "0 0 30 2 *" }, true},
		"deleted, its finalizer goes": {func(b *slipwayv1alpha1.Backup) {
			b.DeletionTimestamp, b.Finalizers, b.Spec.Schedule = &metav1.Time{Time: created}, nil, "no"
		}, false},
	} {
		t.Run(name, func(t *testing.T) {
			after := bad.DeepCopy()
			tc.change(after)
			if _, err := at1().ValidateUpdate(t.Context(), bad, after); (err != nil) != tc.refused {
				t.Errorf("the answer is %v", err)
			}
		})
	}
	if _, err := at1().ValidateDelete(t.Context(), bad); err != nil {
		t.Errorf("a deletion is refused: %v", err)
	}
}

func TestAScheduleThatMayNotBeMeantIsWarnedOf(t *testing.T) {
	odd := wrong(scheduled("*/61 * * * *"))
	warnings, err := at1().ValidateCreate(t.Context(), odd)
	if err != nil || len(warnings) != 1 || !strings.HasPrefix(warnings[0], `spec.schedule: "*/61" fires once`) {
		t.Errorf("the answer is %q, %v", warnings, err)
	}
	touched := odd.DeepCopy()
	touched.Spec.Suspend = true
	if warnings, _ := at1().ValidateUpdate(t.Context(), odd, touched); len(warnings) > 0 {
		t.Errorf("an update of another field is warned of %q", warnings)
	}
	drill := odd.DeepCopy()
	drilled("*/61 * * * *")(&drill.Spec)
	if warnings, _ := at1().ValidateUpdate(t.Context(), odd, drill); len(warnings) != 2 || !strings.HasPrefix(warnings[1], `spec.verify.drill.schedule: "*/61" fires once`) {
		t.Errorf("a schedule of drills is warned of %q", warnings)
	}
	long := wrong(scheduled("*/14 " + strings.Repeat("1,", 50) + "1 * * *"))
	warnings, _ = at1().ValidateUpdate(t.Context(), odd, long)
	for _, warning := range warnings {
		if len(warning) > maxWarning {
			t.Errorf("a warning has %d bytes", len(warning))
		}
	}
	if len(warnings) != 2 {
		t.Errorf("an update of the schedule is warned of %q", warnings)
	}
}
