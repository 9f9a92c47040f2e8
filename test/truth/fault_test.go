//go:build e2e

package truth

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	networkingv1 "k8s.io/api/networking/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"

	slipwayv1alpha1 "github.com/slipway-dev/slipway/api/v1alpha1"
	"github.com/slipway-dev/slipway/internal/testing/livecluster"
	"github.com/slipway-dev/slipway/internal/testing/livetest"
)

// goal is how long after the cluster status may know that something is wrong, and that it
// is over.
const goal = 2 * time.Second

const (
	// skew is how much later than one watch another may show what has happened at the same time.
	skew = time.Second
	// catchUp is how long a watch is waited for that is behind.
	catchUp = 5 * time.Second
)

// fault is one way in which an object is not as its spec says.
type fault struct {
	// subject is the object that has to tell it. Without a name, as where it is in no namespace, it has that of the trial's.
	subject client.Object
	// prepare makes what there is before, but for the subject. Optional.
	prepare func(*trial)
	// start makes what is good before. The subject is waited for until it is ready. Nil: the
	// subject does not exist before.
	start func(*trial)
	// cause makes the fault.
	cause func(*trial)
	// lasts reports whether the fault is there when cause has returned, not from its beginning.
	lasts bool
	// known tells an object by which the cluster knows of the fault. Nil: from the moment
	// that the cause begins.
	known func(client.Object) bool
	// says is what the subject must say.
	says []claim
	// names is what the message of every claim that is True for trouble must hold: the
	// object and the field.
	names []string
	// answer is what it must hold besides as soon as an event of the kubelet says it. Such an
	// event may come much later than the trouble: the kubelet waits ten seconds after one that
	// it could not write. Optional.
	answer string
	// ends is what the subject must say in the end, however long it takes. Optional.
	ends []claim
	// innocent reports whether nothing is wrong: from the cause on the subject must never say so.
	innocent bool
	// warns is the reason of the Warning event that there must be. Empty: none is looked for.
	warns string
	// mend ends the fault. Nil: nothing does, as for an object that goes.
	mend func(*trial)
	// good tells an object by which the cluster knows that the fault is over. Nil: from the
	// moment that mend begins.
	good func(client.Object) bool
	// still tells an object that the cluster shows later, while the fault lasts. From when it is told until then, status says the
	// same all the time. Optional.
	still func(client.Object) bool
	// forgets is what status must not hold any more once it has been time to know of the mend, be the subject ready again or not.
	forgets string
	// usual faults are tried in every run.
	usual bool
}

// claim is what a condition must say.
type claim struct {
	condition string
	status    metav1.ConditionStatus
	reason    string // any, where it is empty
	// route reports whether it is the bad route of a gateway that is not live, for the reason.
	route bool
	// named reports whether the message must hold the fault's names. That of Degraded must in any case.
	named bool
}

// trial is a fault that is being tried.
type trial struct {
	*livetest.Fixture

	fault   fault
	subject *livetest.Record // of the subject's kind
	seen    []*livetest.Record
}

// It runs a few at a time: it measures.
func TestStatusTellsEveryFault(t *testing.T) {
	const atATime = 2
	whole := os.Getenv("TRUTH") == "whole" // not only the usual ones
	turns := make(chan struct{}, atATime)
	for name, fault := range faults() {
		if !fault.usual && !whole {
			continue
		}
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			turns <- struct{}{}
			defer func() { <-turns }()
			try(t, name, fault)
		})
	}
}

func faults() map[string]fault {
	all := map[string]fault{}
	for _, some := range []map[string]fault{podFaults(), imageFaults(), configFaults(), admissionFaults(), servingFaults(), childFaults(), routeFaults(), gatewayFaults(), backupFaults(), copyFaults(), restoreFaults(), standardFaults(), ruleFaults()} {
		for name, fault := range some {
			if _, twice := all[name]; twice {
				panic("two faults are called " + name)
			}
			all[name] = fault
		}
	}
	return all
}

func try(t *testing.T, name string, fault fault) {
	f := &trial{Fixture: livetest.New(t, cluster), fault: fault}
	f.watch()
	if fault.prepare != nil {
		fault.prepare(f)
	}
	if fault.start != nil {
		fault.start(f)
		f.settles()
	}

	begun := time.Now()
	fault.cause(f)
	known := begun
	if fault.lasts {
		known = time.Now()
	}
	f.Patience = 40 * time.Second
	reported := f.subject.First(begun, fault.says[0].condition+" "+fault.says[0].reason, f.claims(fault.says))
	if fault.known != nil {
		known = f.shown(begun, "what status says", fault.known)
		f.notBefore(reported.At, known)
	}
	result := result{name: name, subject: kindOf(fault.subject), reported: f.late(reported.At, known, "told"), message: f.message(reported.Object)}
	if fault.answer != "" {
		result.message = f.message(f.answered(begun, known))
	}
	if fault.warns != "" {
		f.warned()
	}

	f.Patience = livetest.Patience
	if fault.still != nil {
		f.saysTheSame(reported.At)
	}
	if fault.ends != nil {
		f.subject.First(reported.At, "how it ends", f.claims(fault.ends))
	}

	if fault.mend != nil {
		mended := time.Now()
		fault.mend(f)
		cleared := f.subject.First(mended, "ready again", f.isFine)
		late := f.late(cleared.At, f.over(mended, cleared.At), "cleared")
		result.cleared = &late
		f.forgot(mended)
	}
	f.wasTruthful(begun)
	f.Measured("%s: told after %v: %s", name, result.reported.Round(time.Millisecond), result.message)
	results.add(result)
}

// watch records what the subject says and what the cluster knows.
func (f *trial) watch() {
	f.Helper()
	for _, list := range []client.ObjectList{
		&corev1.PodList{}, &appsv1.DeploymentList{}, &corev1.ServiceList{}, &corev1.EventList{},
		&autoscalingv2.HorizontalPodAutoscalerList{}, &networkingv1.IngressList{}, &corev1.PersistentVolumeClaimList{},
	} {
		f.seen = append(f.seen, f.Record(list))
	}
	for _, list := range []client.ObjectList{&slipwayv1alpha1.WebAppList{}, &slipwayv1alpha1.APIGatewayList{}} {
		f.seen = append(f.seen, f.Record(list))
	}
	if backups := []client.ObjectList{&slipwayv1alpha1.BackupRunList{}, &slipwayv1alpha1.RestoreList{}}; isBackup(f.fault.subject) {
		for _, list := range backups {
			f.seen = append(f.seen, f.Record(list))
		}
	}
	f.subject = f.Record(listOf(f.fault.subject))
	f.seen = append(f.seen, f.subject)
}

// settles waits until the subject is ready, and has been for long enough to be returned to.
func (f *trial) settles() {
	f.Helper()
	f.subject.First(time.Time{}, "ready before anything is wrong", func(s livetest.Sighting) bool {
		app, ok := s.Object.(*slipwayv1alpha1.WebApp)
		return f.isFine(s) && (!ok || app.Status.Rollout == nil)
	})
}

// said returns what the status of the subject says, as a watch has shown it, or nil where that was of another object.
func (f *trial) said(s livetest.Sighting) *said {
	if s.Object.GetName() != f.name() || s.Event == watch.Deleted {
		return nil
	}
	return saidBy(s.Object)
}

// name is that of the subject.
func (f *trial) name() string { return cmp.Or(f.fault.subject.GetName(), f.Namespace) }

// claims reports whether the subject says all that is claimed.
func (f *trial) claims(claims []claim) func(livetest.Sighting) bool {
	return func(s livetest.Sighting) bool {
		said := f.said(s)
		if said == nil || !said.observed {
			return false
		}
		for _, claim := range claims {
			if claim.check(said, f.fault.names) != nil {
				return false
			}
		}
		return true
	}
}

func (c claim) check(said *said, names []string) error {
	if c.route {
		return c.checkRoute(said.object.(*slipwayv1alpha1.APIGateway), names)
	}
	is := said.condition(c.condition)
	if c.status == "" {
		if is != nil {
			return fmt.Errorf("%s is there", c.condition)
		}
		return nil
	}
	if is == nil || is.Status != c.status || (c.reason != "" && is.Reason != c.reason) {
		return fmt.Errorf("%s is %+v, want %s %s", c.condition, is, c.status, c.reason)
	}
	if !c.named && (c.condition != slipwayv1alpha1.ConditionDegraded || is.Status != metav1.ConditionTrue) {
		return nil
	}
	return holds(is.Message, names)
}

// checkRoute checks that the bad route is not live, for the reason, and no other.
func (c claim) checkRoute(gateway *slipwayv1alpha1.APIGateway, names []string) error {
	routes := gateway.Status.Routes
	if len(routes.NotLive) != 1 || routes.NotLive[0].Name != badRoute || routes.NotLive[0].Reason != c.reason || routes.Live != routes.Total-1 {
		return fmt.Errorf("the routes are %+v, want %s not live because of %s", routes, badRoute, c.reason)
	}
	return holds(routes.NotLive[0].Message, names)
}

func holds(message string, parts []string) error {
	for _, part := range parts {
		if !strings.Contains(message, part) {
			return fmt.Errorf("it says %q without %q", message, part)
		}
	}
	return nil
}

func (f *trial) isFine(s livetest.Sighting) bool {
	said := f.said(s)
	return said != nil && said.fine
}

// message is what the first claim's condition says.
func (f *trial) message(object client.Object) string {
	is := saidBy(object).condition(f.fault.says[0].condition)
	if is == nil {
		return ""
	}
	return is.Message
}

// forgot checks that no status holds what it must not any more.
func (f *trial) forgot(mended time.Time) {
	f.Helper()
	if f.fault.forgets == "" {
		return
	}
	for _, s := range f.subject.All() {
		said := f.said(s)
		if said == nil || s.At.Before(mended.Add(goal)) {
			continue
		}
		for _, c := range said.conditions {
			if strings.Contains(c.Message, f.fault.forgets) {
				f.Errorf("%v after the mend, %s still says %q", s.At.Sub(mended).Round(time.Millisecond), c.Type, c.Message)
			}
		}
	}
}

// shown returns when the cluster first showed what matches, which status has said. The watch that shows it may be behind.
func (f *trial) shown(since time.Time, what string, matches func(client.Object) bool) time.Time {
	f.Helper()
	waiting := *f.Fixture
	waiting.Patience = catchUp
	return waiting.Earliest(since, what, matches, f.seen...)
}

// over returns when the cluster last showed, after the mend, that the fault is over. The watch that shows it may be behind the
// subject's. Where the cluster has shown it all the time, it is over from the mend on.
func (f *trial) over(mended, cleared time.Time) time.Time {
	f.Helper()
	if f.fault.good == nil {
		return mended
	}
	good := mended
	err := livecluster.Eventually(f.Context(), skew, func() error {
		good = livetest.LatestBefore(mended, cleared.Add(skew), f.fault.good, f.seen...)
		if good.Equal(mended) {
			return errors.New("no watch has shown it since the mend")
		}
		return nil
	})
	if err != nil && !livetest.Shows(f.fault.good, f.seen...) {
		f.Errorf("it says that all is well, and the cluster does not show it: %v", err)
	}
	return good
}

// notBefore checks that status did not know before the cluster.
func (f *trial) notBefore(said, known time.Time) {
	f.Helper()
	if early := known.Sub(said); early > skew {
		f.Errorf("it was told %v before the cluster knew: known is not what it is told by", early.Round(time.Millisecond))
	}
}

// late is how long after the cluster status knew.
func (f *trial) late(said, known time.Time, what string) time.Duration {
	f.Helper()
	late := max(0, said.Sub(known))
	if late > goal {
		f.Errorf("it was %s %v after the cluster knew, want at most %v", what, late.Round(time.Millisecond), goal)
	}
	return late
}

// answered waits until status holds the answer of the kubelet's event, and returns the subject
// as it says so. The events of a pod are read less and less often: after half as long again as
// its trouble lasts.
func (f *trial) answered(begun, known time.Time) client.Object {
	f.Helper()
	names := append(slices.Clone(f.fault.names), f.fault.answer)
	says := f.fault.says[0]
	reported := f.subject.First(begun, says.condition+" with "+f.fault.answer, func(s livetest.Sighting) bool {
		said := f.said(s)
		return said != nil && said.observed && says.check(said, names) == nil
	})
	written := f.shown(begun, "an event with "+f.fault.answer, func(o client.Object) bool {
		event, ok := o.(*corev1.Event)
		return ok && strings.Contains(event.Message, f.fault.answer)
	})
	// The first failure is written before the pod is unready, and asks for nothing yet.
	after := max(0, written.Sub(known))
	if late, most := reported.At.Sub(known.Add(after)), goal+after/2; late > most {
		f.Errorf("it said %q %v after the kubelet did, want at most %v", f.fault.answer, late.Round(time.Millisecond), most.Round(time.Millisecond))
	}
	return reported.Object
}

// saysTheSame waits until the fault has lasted for a while, and checks that status has said the same all the time.
func (f *trial) saysTheSame(reported time.Time) {
	f.Helper()
	f.Earliest(reported, "that the fault lasts", f.fault.still, f.seen...)
	says := f.claims(f.fault.says)
	for _, s := range f.subject.All() {
		if said := f.said(s); said != nil && !s.At.Before(reported) && !says(s) {
			f.Errorf("%v after it was told, and before the mend, it says %+v", s.At.Sub(reported).Round(time.Millisecond), said.conditions)
		}
	}
}

// warned waits for the event.
func (f *trial) warned() {
	f.Helper()
	f.Eventually(func() error {
		list := &eventsv1.EventList{}
		if err := f.Cluster.List(f.Context(), list, client.InNamespace(f.Namespace)); err != nil {
			return err
		}
		for i := range list.Items {
			event := &list.Items[i]
			if event.Regarding.Name == f.name() && event.Regarding.Kind == kindOf(f.fault.subject) &&
				event.Type == corev1.EventTypeWarning && event.Reason == f.fault.warns {
				return nil
			}
		}
		return fmt.Errorf("none of %d events is a warning of the %s with the reason %s", len(list.Items), kindOf(f.fault.subject), f.fault.warns)
	})
}

// wasTruthful checks that no status that was ever written contradicts itself.
func (f *trial) wasTruthful(begun time.Time) {
	f.Helper()
	checked := 0
	for _, s := range f.subject.All() {
		said := f.said(s)
		if said == nil || len(said.conditions) == 0 {
			continue
		}
		checked++
		if f.fault.innocent && s.At.After(begun) && meta.IsStatusConditionTrue(said.conditions, slipwayv1alpha1.ConditionDegraded) {
			f.Errorf("nothing is wrong, and it says %+v", said.conditions)
		}
		if err := said.check(); err != nil {
			f.Errorf("a status was not true: %v\n%+v", err, said.conditions)
		}
	}
	if checked == 0 {
		f.Error("no status was seen: the test proves nothing")
	}
}

// trouble is what a subject that is degraded for a reason says; more says what else.
func trouble(reason string, more ...claim) []claim {
	return append([]claim{
		{condition: slipwayv1alpha1.ConditionDegraded, status: metav1.ConditionTrue, reason: reason},
		{condition: slipwayv1alpha1.ConditionReady, status: metav1.ConditionFalse},
	}, more...)
}

var (
	serves       = claim{condition: slipwayv1alpha1.ConditionAvailable, status: metav1.ConditionTrue}
	servesNobody = claim{condition: slipwayv1alpha1.ConditionAvailable, status: metav1.ConditionFalse}
	stalled      = claim{condition: slipwayv1alpha1.ConditionStalled, status: metav1.ConditionTrue}
	notStalled   = claim{condition: slipwayv1alpha1.ConditionStalled}
)
