package refusal

import (
	"fmt"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	clocktesting "k8s.io/utils/clock/testing"
)

// watched is a Reader at work, of one Deployment that is refused with an answer since 900.
type watched struct {
	*testing.T
	cluster
	reader *Reader
	clock  *clocktesting.FakePassiveClock
	answer string
	// retried is what the Deployment says of that.
	retried time.Time
	// said are all texts that were told, one after the other.
	said []string
}

func watch(t *testing.T, answer string) *watched {
	f := &watched{T: t, clock: clocktesting.NewFakePassiveClock(time.Unix(1000, 0)), answer: `pods "shop-a-x" ` + answer}
	f.reader = NewReader(&f.cluster, &f.cluster, f.clock)
	return f
}

// look looks after a while.
func (f *watched) look(after time.Duration) (said string, again time.Duration) {
	f.clock.SetTime(f.clock.Now().Add(after))
	w := refused(900)
	w.Deployment.Status.Conditions[0].Message = f.answer
	if !f.retried.IsZero() {
		w.Deployment.Annotations[AnnotationRetried] = f.retried.UTC().Format(time.RFC3339)
	}
	w, recheck := f.reader.Look(f.Context(), types.NamespacedName{Namespace: "team", Name: "shop"}, w)
	if w.Refusal != nil {
		said = w.Deployed().Message
	}
	if n := len(f.said); n == 0 || f.said[n-1] != said {
		f.said = append(f.said, said)
	}
	return said, recheck.In()
}

// says makes an event of now.
func (f *watched) says(answer string) {
	f.events = append(f.events, corev1.Event{LastTimestamp: metav1.NewTime(f.clock.Now()), Message: answer})
}

// ranged makes the LimitRange allow so much memory.
func (f *watched) ranged(version int, most string) {
	f.ranges = []corev1.LimitRange{{
		ObjectMeta: metav1.ObjectMeta{Name: "limits", ResourceVersion: fmt.Sprint(version)},
		Spec: corev1.LimitRangeSpec{Limits: []corev1.LimitRangeItem{{
			Type: corev1.LimitTypeContainer, Max: corev1.ResourceList{"memory": resource.MustParse(most)},
		}}},
	}}
}

const (
	exceeded    = `is forbidden: exceeded quota: team, requested: pods=1, used: pods=5, limited: pods=5`
	unspecified = `is forbidden: failed quota: team: must specify pods for: app`
	tooMuch     = `is forbidden: maximum memory usage per Container is 64Mi, but limit is 1Gi`
	tooFree     = `is forbidden: violates PodSecurity "restricted:latest": unrestricted capabilities`
)

// What others do in the namespace changes what an object counts, and how it is labelled. As long as it refuses, that costs no
// status and no event that is read more often. Pods that a full quota refuses are not asked for again, others seldom.
func TestWhatIsStillRefusedCostsNoWrite(t *testing.T) {
	tests := map[string]struct {
		answer  string
		change  func(f *watched, i int)
		retries int
	}{
		"a full quota":                  {exceeded, func(f *watched, i int) { f.count(i, "5", fmt.Sprint(5+i)) }, 0},
		"a full quota of another limit": {exceeded, func(f *watched, i int) { f.count(i, "3", fmt.Sprint(3+i)) }, 0},
		"a quota that wants values":     {unspecified, func(f *watched, i int) { f.count(i, "9", fmt.Sprint(i%5)) }, 40},
		"a LimitRange":                  {tooMuch, func(f *watched, i int) { f.ranged(i, "64Mi") }, 40},
		"a Pod Security level":          {tooFree, func(*watched, int) {}, 40},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			f := watch(t, tc.answer)
			for i := range 100 {
				tc.change(f, i)
				f.says(fmt.Sprintf(`Error creating: pods "shop-a-%d" %s`, i, tc.answer))
				f.look(5 * time.Second)
				f.look(5 * time.Second)
			}
			if len(f.said) != 1 || f.writes != 0 || f.reads > 6 || len(f.retries) > tc.retries {
				t.Errorf("%d texts, %d writes, pods asked for %d times, and events were read %d times in 1000 s: %q", len(f.said), f.writes, len(f.retries), f.reads, f.said)
			}
		})
	}
}

// What cannot be seen to have gone may have: the pods are asked for again, by the rechecks alone, soon while they have been refused
// for a short time, and never so seldom that a user waits for more than half a minute in the first hour.
func TestPodsAreAskedForAgain(t *testing.T) {
	for name, answer := range map[string]string{
		"an admission policy":       `is forbidden: ValidatingAdmissionPolicy 'no-demo' with binding 'no-demo' denied request: no`,
		"a quota that wants values": unspecified,
		"a LimitRange":              tooMuch,
		"a Pod Security level":      tooFree,
	} {
		t.Run(name, func(t *testing.T) {
			f := watch(t, answer)
			f.count(1, "9", "1")
			f.ranged(1, "64Mi")
			begin := time.Unix(900, 0)
			f.clock.SetTime(begin)
			for again := time.Duration(0); f.clock.Now().Before(begin.Add(24 * time.Hour)); {
				if _, again = f.look(again); again == 0 {
					t.Fatalf("nobody looks again %v after the refusal", f.clock.Since(begin))
				}
			}
			last := begin
			for _, at := range f.retries {
				most := max(minRetry, min(at.Sub(begin)/4, maxRetry))
				if at.Sub(begin) > time.Hour {
					most = maxRetryLater
				}
				if pause := at.Sub(last); pause > most+time.Second {
					t.Errorf("%v after the refusal there was no try for %v", at.Sub(begin), pause)
				}
				last = at
			}
			if n := len(f.retries); n > 600 || len(f.said) != 1 || f.writes != 0 {
				t.Errorf("%d tries and %d mends in a day, told %q", n, f.writes, f.said)
			}
			// Another operator goes on where this one was.
			f.reader, f.retried, f.retries = NewReader(&f.cluster, &f.cluster, f.clock), last, nil
			if f.look(0); len(f.retries) > 0 {
				t.Error("an operator that starts asks again at once")
			}
			f.retried = f.clock.Now().Add(24 * 365 * time.Hour)
			if f.look(maxRetryLater); len(f.retries) != 1 {
				t.Errorf("%d tries after somebody wrote one of next year", len(f.retries))
			}
		})
	}
}

// One policy may refuse the pods of a whole cluster. They are asked for one after the other.
func TestPodsOfManyDeploymentsAreNotAskedForAtOnce(t *testing.T) {
	const deployments, pause, rounds = 200, 5 * time.Second, 20
	f := watch(t, tooFree)
	for range rounds {
		f.clock.SetTime(f.clock.Now().Add(pause))
		for i := range deployments {
			w := refused(900)
			w.Deployment.UID, w.Deployment.Status.Conditions[0].Message = types.UID(fmt.Sprint(i)), f.answer
			f.reader.Look(f.Context(), types.NamespacedName{Namespace: "team", Name: fmt.Sprint(i)}, w)
		}
	}
	most := retriesAtOnce + int(retriesPerSecond*pause.Seconds())*rounds
	if n := len(f.retries); n < most/2 || n > most {
		t.Errorf("pods were asked for %d times, want %d at most, and not much less", n, most)
	}
}

// What refused is mended, too, when it has gone or says something else, before the first look or after it. The pods are woken
// once. A LimitRange or a quota that changes in another way may be mended: that is tried once.
func TestWhatHasGoneIsMended(t *testing.T) {
	full := func(f *watched) { f.count(1, "5", "5") }
	ranged := func(f *watched) { f.ranged(1, "64Mi") }
	tests := map[string]struct {
		answer string
		first  func(f *watched)
		then   func(f *watched)
	}{
		"a quota is deleted":                    {exceeded, full, func(f *watched) { f.gone = true }},
		"a quota was deleted":                   {exceeded, nil, func(f *watched) { f.gone = true }},
		"a quota that wants values is deleted":  {unspecified, full, func(f *watched) { f.gone = true }},
		"a quota that wants values was deleted": {unspecified, nil, func(f *watched) { f.gone = true }},
		"a quota wants values no more":          {unspecified, full, func(f *watched) { f.quota = corev1.ResourceQuota{} }},
		"a quota wanted values":                 {unspecified, nil, func(f *watched) { f.quota = corev1.ResourceQuota{} }},
		"a quota that wants values has other terms": {unspecified, full, func(f *watched) {
			f.count(2, "5", "5")
			f.quota.Spec.Scopes = []corev1.ResourceQuotaScope{"BestEffort"}
		}},
		"a LimitRange is deleted":              {tooMuch, ranged, func(f *watched) { f.ranges = nil }},
		"a LimitRange was deleted":             {tooMuch, nil, func(f *watched) { f.ranges = nil }},
		"a LimitRange is widened":              {tooMuch, ranged, func(f *watched) { f.ranged(2, "2Gi") }},
		"a LimitRange was widened":             {tooMuch, nil, func(f *watched) { f.ranged(2, "2Gi") }},
		"a Pod Security level that is lowered": {tooFree, func(f *watched) { f.level = "restricted" }, func(f *watched) { f.level = "baseline" }},
		"a LimitRange that sets what a full quota counts": {
			exceeded,
			func(f *watched) { f.count(1, "5", "5"); f.ranged(1, "64Mi") },
			func(f *watched) { f.ranged(2, "32Mi") },
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			f := watch(t, tc.answer)
			if tc.first != nil {
				tc.first(f)
				if said, _ := f.look(time.Minute); said == "" || f.writes != 0 {
					t.Fatalf("while it refuses: %q after %d writes", said, f.writes)
				}
			}
			tc.then(f)
			if said, again := f.look(time.Minute); said != "" || again != grace || f.writes != 1 {
				t.Fatalf("mended: %q, again after %v, %d writes", said, again, f.writes)
			}
			for range 100 {
				if said, again := f.look(10 * time.Second); said == "" || again == 0 || f.writes != 1 {
					t.Fatalf("refused nevertheless: %q, again after %v, %d writes", said, again, f.writes)
				}
			}
			if f.reads > 6 {
				t.Errorf("events were read %d times in 1000 s", f.reads)
			}
		})
	}
}

// What cannot be looked at is told as it was said last. That is read again in steps, whatever was said first.
func TestTheLastWordIsReadAgain(t *testing.T) {
	f := watch(t, "")
	f.answer = `admission webhook "first.example.com" denied the request: no team`
	tests := []struct{ event, reason string }{
		{"", "first.example.com"},
		{`Error creating: admission webhook "second.example.com" denied the request: no owner`, "second.example.com"},
		{combined + `Error creating: pods "shop-a-y" ` + exceeded, "5 of 5 is used"},
	}
	f.count(1, "5", "5")
	for _, tc := range tests {
		if tc.event != "" {
			f.says(tc.event)
		}
		again, begun := time.Duration(0), f.clock.Now()
		for f.clock.Since(begun) < 10*time.Minute {
			if _, again = f.look(again); again == 0 {
				break
			}
		}
		if said := f.said[len(f.said)-1]; !strings.Contains(said, tc.reason) || again > maxPause {
			t.Errorf("%q, again after %v, want %q in it", said, again, tc.reason)
		}
	}
	if len(f.said) != len(tests) || f.reads > 8 || f.writes != 0 {
		t.Errorf("%d writes, %d reads, told %q", f.writes, f.reads, f.said)
	}
}
