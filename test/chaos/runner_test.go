//go:build chaos

package chaos

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	autoscalingv2 "k8s.io/api/autoscaling/v2"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	slipwayv1alpha1 "github.com/slipway-dev/slipway/api/v1alpha1"
	"github.com/slipway-dev/slipway/internal/testing/livecluster"
)

const (
	// patience is how long to wait for what should come. Most of it is room for a busy
	// machine.
	patience = 3 * time.Minute
	// lastNotes is how much of what happened is printed when something is wrong.
	lastNotes  = 80
	timeFormat = "15:04:05.000"
)

// runner carries out what the planner plans, and compares.
type runner struct {
	*testing.T
	namespace string
	plan      *planner
	report    *report
	journal   *journal
	// kills are those since the cluster was last what it should be.
	kills []struck
	// before are the pods of each application when it last was.
	before map[string]map[types.UID]bool
	// rollouts is how many each Deployment had gone through then.
	rollouts map[string]int

	mutex sync.Mutex
	notes []string
	// greetings is the version of each application's Secret that last changed what pods use.
	greetings map[string]int64
}

// struck is a kill and when it happened.
type struck struct {
	victim victim
	at     time.Time
}

// newNamespace makes a namespace that goes when the test ends.
func newNamespace(t *testing.T) string {
	t.Helper()
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{
		GenerateName: "chaos-",
		Labels:       map[string]string{"pod-security.kubernetes.io/enforce": "restricted"},
	}}
	if err := cluster.Create(t.Context(), namespace); err != nil {
		t.Fatalf("make a namespace: %v", err)
	}
	t.Cleanup(func() {
		if t.Failed() {
			// What is left is what one wants to look at; KEEP=1 keeps the cluster for it.
			return
		}
		if err := insistOnDeletion(context.Background(), "delete the namespace", namespace); err != nil {
			t.Error(err)
		}
	})
	return namespace.Name
}

// note remembers what happened, for the case that something goes wrong.
func (r *runner) note(format string, args ...any) {
	r.mutex.Lock()
	defer r.mutex.Unlock()
	r.notes = append(r.notes, time.Now().Format(timeFormat)+" "+fmt.Sprintf(format, args...))
}

// measured logs a line that hack/testsum shows at once.
func measured(t *testing.T, format string, args ...any) {
	t.Helper()
	t.Logf("measured: "+format, args...)
}

// fail ends the test and says what happened before.
func (r *runner) fail(err error) {
	r.Helper()
	r.mutex.Lock()
	defer r.mutex.Unlock()
	r.Fatalf("%v\nwhat happened last:\n%s", err, strings.Join(r.notes[max(0, len(r.notes)-lastNotes):], "\n"))
}

// play does what a round says, and returns when every change is acknowledged.
func (r *runner) play(next round) {
	r.Helper()
	r.note("round %d", next.number)
	ctx, cancel := context.WithCancel(r.Context())
	defer cancel()
	var done sync.WaitGroup
	var mutex sync.Mutex
	var errs []error
	start := func(work func() error) {
		done.Go(func() {
			if err := work(); err != nil {
				cancel()
				mutex.Lock()
				defer mutex.Unlock()
				errs = append(errs, err)
			}
		})
	}
	begin := time.Now()
	for _, changes := range byApp(next.changes) {
		start(func() error {
			for _, c := range changes {
				await(ctx, begin.Add(c.after))
				if err := r.carryOut(ctx, c); err != nil {
					return err
				}
			}
			return nil
		})
	}
	start(func() error {
		for _, k := range next.kills {
			await(ctx, begin.Add(k.after))
			at, err := r.strike(ctx, k)
			if err != nil {
				return err
			}
			if !at.IsZero() {
				r.kills = append(r.kills, struck{victim: k.victim, at: at})
			}
		}
		return nil
	})
	done.Wait()
	if err := errors.Join(errs...); err != nil {
		r.fail(err)
	}
	r.report.played(next)
}

// byApp separates the changes of each application, which have an order, from those of
// others, which have none.
func byApp(changes []change) map[string][]change {
	result := map[string][]change{}
	for _, c := range changes {
		result[c.want.name] = append(result[c.want.name], c)
	}
	return result
}

// await waits for a moment.
func await(ctx context.Context, moment time.Time) {
	timer := time.NewTimer(time.Until(moment))
	defer timer.Stop()
	select {
	case <-ctx.Done():
	case <-timer.C:
	}
}

// settle waits until the cluster is what the model says, and looks what that took.
func (r *runner) settle() *state {
	r.Helper()
	s := r.converge()
	if n := len(r.kills); n > 0 {
		took := time.Since(r.kills[n-1].at)
		r.report.converged = append(r.report.converged, took)
		measured(r.T, "storm %d: %d kills, everything is as it should be %v after the last one", len(r.report.converged), n, took.Round(10*time.Millisecond))
	}
	if err := r.account(s); err != nil {
		r.fail(err)
	}
	r.checkJournal()
	r.checkOperator()
	r.plan.settled()
	r.kills = nil
	r.note("everything is as it should be")
	return s
}

// converge waits until the cluster is what the model says. What must never be ends the
// test at once.
func (r *runner) converge() *state {
	r.Helper()
	var s *state
	var broken error
	err := livecluster.Eventually(r.Context(), patience, func() (err error) {
		if s, err = read(r.Context(), r.namespace); err != nil {
			return err
		}
		err = errors.Join(s.compare(r.plan.apps), s.compareConfigs(r.greetings, r.plan.apps))
		if errors.As(err, new(violation)) {
			broken = err
			return nil
		}
		if err == nil {
			err = r.serves(s)
		}
		return err
	})
	if broken != nil {
		r.report.baseless += int(livecluster.Restarts(s.pods.Items))
		err = broken
	}
	if err != nil {
		r.fail(err)
	}
	return s
}

// serves asks every pod what it runs with.
//
// What it got of its Secret is the kubelet's business, which reads Secrets through a
// cache. When its watch is behind, a pod that is started because of a change starts
// with the content before it, and keeps that. The operator cannot see it, so this is
// counted and no failure.
func (r *runner) serves(s *state) error {
	http := livecluster.NewHTTPClient()
	for _, a := range r.plan.apps {
		for _, pod := range livecluster.Staying(itemsOf(s.pods.Items, a.name)) {
			url := livecluster.Address(pod.Status.PodIP, a.port)
			message, err := livecluster.Ask(r.Context(), http, url)
			if err != nil {
				return fmt.Errorf("pod %s does not answer: %w", pod.Name, err)
			}
			if !strings.Contains(message, a.messageText()) {
				return fmt.Errorf("pod %s answers %q, want %q in it", pod.Name, message, a.messageText())
			}
			config, err := livecluster.Ask(r.Context(), http, url+"/config")
			if err != nil {
				return fmt.Errorf("pod %s does not answer: %w", pod.Name, err)
			}
			if !strings.Contains(config, a.greetingText()) {
				r.note("pod %s answers %q, want %q in it", pod.Name, config, a.greetingText())
				r.report.outdated[pod.UID] = true
			}
		}
	}
	return nil
}

// account compares the pods with those of the last time. Only a reason makes pods come
// and go: another number was asked for, or another template. Of an application of which
// neither was changed they are the same ones.
func (r *runner) account(s *state) error {
	now := map[string]map[types.UID]bool{}
	var errs []error
	for name, a := range r.plan.apps {
		now[name] = map[types.UID]bool{}
		for _, pod := range livecluster.Staying(itemsOf(s.pods.Items, name)) {
			now[name][pod.UID] = true
			r.report.pods[pod.UID] = true
		}
		if a.since.created {
			r.rollouts[name] = 1
		}
		// It is a number, or the state would not have been accepted.
		rollouts, _ := strconv.Atoi(find(s.deployments.Items, name).Annotations[revisionAnnotation])
		r.report.templates += a.since.templates
		r.report.rollouts += rollouts - r.rollouts[name]
		r.rollouts[name] = rollouts
		if a.since.created {
			continue
		}
		if !a.since.scaled && a.since.templates == 0 {
			r.report.bystanders++
		}
		replaced := a.since.templates * int(a.since.most)
		added, removed := lacking(now[name], r.before[name]), lacking(r.before[name], now[name])
		excess := max(0, added-replaced-int(a.since.more)) + max(0, removed-replaced-int(a.since.fewer))
		if excess > 0 {
			r.report.baseless += excess
			errs = append(errs, fmt.Errorf("%s: %d pods were added and %d removed after %d changes of what pods are made of, %d pods more and %d fewer asked for",
				name, added, removed, a.since.templates, a.since.more, a.since.fewer))
		}
	}
	r.before = now
	return errors.Join(errs...)
}

// lacking counts what is in one set and not in another.
func lacking(in, from map[types.UID]bool) int {
	n := 0
	for uid := range in {
		if !from[uid] {
			n++
		}
	}
	return n
}

func (r *runner) checkJournal() {
	r.Helper()
	written, lost, err := r.journal.check(r.Context())
	r.report.wrote(written, r.kills)
	r.report.lost += len(lost)
	if len(lost) > 0 {
		err = fmt.Errorf("%d of %d writes that were acknowledged are lost: %v", len(lost), len(written), lost)
	}
	if err != nil {
		r.fail(err)
	}
}

// checkOperator looks for operators that ended without being killed, and says so.
func (r *runner) checkOperator() {
	r.Helper()
	err := insist(r.Context(), "look at the operator", func(ctx context.Context) error {
		pods, err := cluster.OperatorPods(ctx)
		r.report.operator(pods)
		return err
	})
	if err != nil {
		r.fail(err)
	}
}

// nothingLeft waits until the namespace holds nothing that the operator made.
func (r *runner) nothingLeft() {
	r.Helper()
	err := livecluster.Eventually(r.Context(), patience, func() error {
		s, err := read(r.Context(), r.namespace)
		if err != nil {
			return err
		}
		if n := len(s.pods.Items); n > 0 {
			return fmt.Errorf("%d pods are left", n)
		}
		return s.leftovers(nil)
	})
	if err != nil {
		r.fail(err)
	}
}

// quiet waits until nothing of the namespace has changed for a while: the controllers of
// Kubernetes still write for a moment after a rollout.
func (r *runner) quiet() map[string]string {
	r.Helper()
	const while = 2 * time.Second
	var last map[string]string
	var since time.Time
	err := livecluster.Eventually(r.Context(), patience, func() error {
		s, err := read(r.Context(), r.namespace)
		if err != nil {
			return err
		}
		if all, staying := len(s.pods.Items), len(livecluster.Staying(s.pods.Items)); all != staying {
			return fmt.Errorf("%d of %d pods are ending", all-staying, all)
		}
		if now := s.versions(); !maps.Equal(now, last) {
			last, since = now, time.Now()
		}
		if time.Since(since) < while {
			return errors.New("something keeps changing")
		}
		return nil
	})
	if err != nil {
		r.fail(err)
	}
	return last
}

// versions tells for each object which one it is, and at which version.
func (s *state) versions() map[string]string {
	versions := map[string]string{}
	for _, object := range s.objects() {
		version := object.GetResourceVersion()
		switch object := object.(type) {
		case *slipwayv1alpha1.WebApp:
			if object.Spec.Autoscaling != nil {
				// Its status tells what the autoscaler's does.
				version = fmt.Sprint("generation ", object.Generation)
			}
		case *corev1.Pod:
			// Its status is the kubelet's business.
			version = ""
		case *autoscalingv2.HorizontalPodAutoscaler:
			// Its status is written now and then, whatever happens.
			version = fmt.Sprint("generation ", object.GetGeneration())
		}
		versions[describe(object)] = string(object.GetUID()) + " " + version
	}
	return versions
}
