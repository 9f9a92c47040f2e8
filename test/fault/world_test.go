//go:build faulttest

package fault_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"testing"
	"time"

	authorizationv1 "k8s.io/api/authorization/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/slipway-dev/slipway/internal/operator"
	"github.com/slipway-dev/slipway/internal/testing/environment"
	"github.com/slipway-dev/slipway/internal/testing/fault"
	"github.com/slipway-dev/slipway/internal/testing/scenario"
)

// The operator as a user of the API server with the rights of the shipped role.
const (
	operatorUser = "the-operator"
	operatorRole = "slipway-operator"
)

// revokedFor is how long the operator has no rights at all.
const revokedFor = 500 * time.Millisecond

// revoked counts in which namespaces the operator has no rights now.
var revoked struct {
	sync.Mutex
	namespaces map[string]int
}

func countRevoked(namespace string, more int) {
	revoked.Lock()
	defer revoked.Unlock()
	if revoked.namespaces == nil {
		revoked.namespaces = map[string]int{}
	}
	revoked.namespaces[namespace] += more
}

// withoutRights is F10: the operator's rights are taken away at a write and given back a
// little later.
func (at injection) withoutRights() injection {
	at.column = "F10 rights revoked"
	at.fault = fault.Fault{Before: func(w fault.Write) {
		countRevoked(w.Home, 1)
		must(revoke(w.Home))
		time.AfterFunc(revokedFor, func() {
			must(grant(w.Home))
			countRevoked(w.Home, -1)
		})
	}}
	at.trial = scenario.Trial{
		Access: func(config *rest.Config, namespace string) {
			config.Impersonate.UserName = operatorUser
			must(grant(namespace))
		},
		Withheld: func(namespace string) bool {
			revoked.Lock()
			defer revoked.Unlock()
			return revoked.namespaces[namespace] > 0
		},
		// What it may list and watch is a matter of rights, too.
		OwnWatches: true,
	}
	return at
}

// must stops everything: the test's own access cannot fail.
func must(err error) {
	if err != nil {
		panic(err)
	}
}

func binding(namespace string) *rbacv1.RoleBinding {
	return &rbacv1.RoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: operatorRole, Namespace: namespace, Labels: map[string]string{scenario.LabelOwn: "yes"}},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: operatorRole},
		Subjects:   []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: "User", Name: operatorUser}},
	}
}

// grant gives the operator the rights in the namespaces of a run.
func grant(home string) error {
	for _, namespace := range scenario.Namespaces(home) {
		err := env.Client.Create(context.Background(), binding(namespace))
		if apierrors.IsNotFound(err) && namespace != home {
			continue // the run has none
		}
		if client.IgnoreAlreadyExists(err) != nil {
			return err
		}
	}
	return allowed(home, true)
}

func revoke(home string) error {
	for _, namespace := range scenario.Namespaces(home) {
		err := env.Client.Delete(context.Background(), binding(namespace))
		if apierrors.IsNotFound(err) && namespace != home {
			continue
		}
		if err != nil {
			return err
		}
	}
	return allowed(home, false)
}

// inNoNamespace are the resources of the operator's role that are in none. A run cannot take away the rights on them: they
// would be those of all others, too.
var inNoNamespace = []string{"namespaces", "gatewayclasses", "gatewayclasses/status", "clusterrolebindings"}

// grantInNoNamespace gives the operator the rights of a role on what is in no namespace.
func grantInNoNamespace(ctx context.Context, role *rbacv1.ClusterRole) error {
	part := &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: role.Name + "-in-no-namespace"}}
	for _, rule := range role.Rules {
		rule.Resources = slices.DeleteFunc(slices.Clone(rule.Resources), func(resource string) bool { return !slices.Contains(inNoNamespace, resource) })
		if len(rule.Resources) > 0 {
			part.Rules = append(part.Rules, rule)
		}
	}
	of := binding("")
	cluster := &rbacv1.ClusterRoleBinding{ObjectMeta: metav1.ObjectMeta{Name: part.Name}, RoleRef: of.RoleRef, Subjects: of.Subjects}
	cluster.RoleRef.Name = part.Name
	return errors.Join(env.Client.Create(ctx, part), env.Client.Create(ctx, cluster))
}

// allowed waits until the API server agrees: it learns of rights with a delay.
func allowed(namespace string, want bool) error {
	for range 2000 {
		review := &authorizationv1.SubjectAccessReview{Spec: authorizationv1.SubjectAccessReviewSpec{
			User:               operatorUser,
			ResourceAttributes: &authorizationv1.ResourceAttributes{Namespace: namespace, Verb: "patch", Group: "apps", Resource: "deployments"},
		}}
		if err := env.Client.Create(context.Background(), review); err != nil {
			return err
		}
		if review.Status.Allowed == want {
			return nil
		}
	}
	return fmt.Errorf("the API server does not come to allowed = %v", want)
}

// A namespace is deleted at every write: the operator reaches a steady state, and does not try
// over and over to make what cannot be made.
func TestADeletedNamespaceIsLeftAlone(t *testing.T) {
	t.Parallel()
	everyScenario(t, func(t *testing.T, kind scenario.Kind, s scenario.Scenario, _ func()) {
		reference := reference(t, s)
		var writes []int
		for at := range reference.Writes {
			if reference.Steps[at] >= kind.SharedSteps(s) {
				writes = append(writes, at)
			}
		}
		for _, at := range pick(s.Kind+"/"+s.Name+" namespace", 1, writes) {
			t.Run(fmt.Sprintf("write %d", at+1), func(t *testing.T) {
				t.Parallel()
				t.Cleanup(func() { table.Add(s.Kind+"/"+s.Name, "F10 namespace deleted", !t.Failed()) })
				deletion := fault.Fault{Before: func(w fault.Write) {
					must(env.Client.Delete(context.Background(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: w.Home}}))
				}}
				play(t, bench, s, scenario.Trial{Faults: fault.Plan{at + 1: deletion}, Ends: true}, reference)
			})
		}
	})
}

// The definitions of the kinds are applied again in the middle of each scenario, changed
// in a word, as an upgrade does. The API server ends every watch of the kinds then, in all
// namespaces, so this has one of its own.
func TestADefinitionIsAppliedAgain(t *testing.T) {
	t.Parallel()
	apart := startBench(t)
	definitions := &upgrade{apply: func(word string) error { return reapplyDefinitions(apart.Env.Client, word) }}
	// Each time the watches of all others end once more, and all wait until they are open again.
	few := func(kind scenario.Kind) []scenario.Scenario {
		return pick(kind.Name+" definitions", sampledDefinitions, kind.Scenarios)
	}
	someScenarios(t, few, func(t *testing.T, _ scenario.Kind, s scenario.Scenario, all func()) {
		t.Cleanup(func() { table.Add(s.Kind+"/"+s.Name, "F10 CRD applied again", !t.Failed()) })
		// Each run breaks the watches of all, so they are best played at the same time.
		all()
		reference := reference(t, s)
		again := fault.Fault{Before: func(w fault.Write) {
			// This is in a reconcile, which recovers from a panic.
			if err := definitions.again(w.Home); err != nil {
				t.Errorf("apply the definitions again: %v", err)
			}
		}}
		// The recorder's own watches end as well, and each time it takes a client longer to
		// watch again.
		trial := scenario.Trial{Faults: fault.Plan{len(reference.Writes)/2 + 1: again}, CacheDelay: fault.NewCacheDelay(nil), Idle: 3 * time.Second, Live: true, OwnWatches: true}
		outcome := play(t, apart, s, trial, reference)
		if !t.Failed() && outcome.InjectedInAll() == 0 && len(outcome.Writes) > len(reference.Writes)/2 {
			t.Errorf("the definitions were not applied again in: %s", scenario.Writes(outcome.Writes))
		}
	})
}

// upgrade applies the definitions again, for all runs that wait for it at once. If each did it at the same time, they would meet
// conflicts, and a busy API server would do the same work over and over until the request times out.
type upgrade struct {
	apply func(word string) error
	// busy is held while they are applied, and next is what has not begun yet.
	busy sync.Mutex
	mu   sync.Mutex
	next func() error
}

// again returns when all of the definitions have been applied since it was called, with a word that no other run has.
func (u *upgrade) again(word string) error {
	u.mu.Lock()
	if u.next == nil {
		u.next = sync.OnceValue(func() error {
			u.busy.Lock()
			defer u.busy.Unlock()
			u.mu.Lock()
			u.next = nil
			u.mu.Unlock()
			return u.apply(word)
		})
	}
	next := u.next
	u.mu.Unlock()
	return next()
}

// startBench returns a bench on an API server of its own until the end of the test.
func startBench(t *testing.T) *scenario.Bench {
	t.Helper()
	apart, err := environment.Start()
	if err != nil {
		t.Fatal(err)
	}
	ctx, end := context.WithCancel(context.Background())
	t.Cleanup(func() {
		end()
		if err := apart.Stop(); err != nil {
			t.Error(err)
		}
	})
	on, err := newBench(ctx, apart, scenario.NewPlaces(*atOnce), bench.Times)
	if err != nil {
		t.Fatal(err)
	}
	return on
}

func reapplyDefinitions(access client.Client, word string) error {
	files, err := filepath.Glob(filepath.Join("..", "..", "config", "crd", "slipway.dev_*.yaml"))
	if err != nil {
		return err
	}
	for _, file := range files {
		raw, err := os.ReadFile(file)
		if err != nil {
			return err
		}
		definition := &unstructured.Unstructured{}
		if err := yaml.Unmarshal(raw, &definition.Object); err != nil {
			return err
		}
		versions, _, err := unstructured.NestedSlice(definition.Object, "spec", "versions")
		if err != nil {
			return err
		}
		for _, version := range versions {
			if err := unstructured.SetNestedField(version.(map[string]any), "Another description: "+word, "schema", "openAPIV3Schema", "description"); err != nil {
				return err
			}
		}
		if err := unstructured.SetNestedSlice(definition.Object, versions, "spec", "versions"); err != nil {
			return err
		}
		err = access.Apply(context.Background(), client.ApplyConfigurationFromUnstructured(definition), client.FieldOwner("upgrade"), client.ForceOwnership)
		if err != nil {
			return err
		}
	}
	return nil
}

// Somebody takes the leader's Lease: the leader stops, and writes nothing any more.
func TestAStolenLeaseEndsTheLeader(t *testing.T) {
	t.Parallel()
	t.Cleanup(func() { table.Add("operator", "F10 lease stolen", !t.Failed()) })
	namespace := env.Namespace(t)
	gate := fault.NewGate(nil)
	leader := env.StartOperatorWith(t, func(config *rest.Config, options *environment.Options) {
		gate.Wrap(config)
		options.Namespaces = []string{namespace}
		options.LeaderElection = true
		options.LeaderElectionNamespace = namespace
	})
	apply(t, namespace, find(t, "webapp/autoscaling").Steps[0].Apply)
	environment.Eventually(t, func() error {
		if len(gate.Writes()) == 0 {
			return fmt.Errorf("the leader has not begun")
		}
		return nil
	})

	environment.Eventually(t, func() error { return steal(t, namespace) })
	if err := leader.Ended(t); err == nil {
		t.Error("the leader ended without saying why")
	}
	before := len(gate.Writes())
	apply(t, namespace, find(t, "webapp/config").Steps[1].Apply)
	environment.Quiet(t, 2*time.Second, func() int { return len(gate.Writes()) })
	if writes := gate.Writes(); len(writes) > before {
		t.Errorf("written without the Lease: %s", scenario.Writes(writes[before:]))
	}
}

func apply(t *testing.T, namespace string, object map[string]any) {
	t.Helper()
	wanted := (&unstructured.Unstructured{Object: object}).DeepCopy()
	wanted.SetNamespace(namespace)
	if err := env.Client.Apply(t.Context(), client.ApplyConfigurationFromUnstructured(wanted), client.FieldOwner("user"), client.ForceOwnership); err != nil {
		t.Fatal(err)
	}
}

// steal makes somebody else the holder of the Lease.
func steal(t *testing.T, namespace string) error {
	lease := &coordinationv1.Lease{}
	if err := env.Client.Get(t.Context(), types.NamespacedName{Namespace: namespace, Name: operator.LeaderElectionID}, lease); err != nil {
		return err
	}
	thief, now := "thief", metav1.NowMicro()
	lease.Spec.HolderIdentity, lease.Spec.RenewTime, lease.Spec.AcquireTime = &thief, &now, &now
	err := env.Client.Update(t.Context(), lease)
	if apierrors.IsConflict(err) {
		return fmt.Errorf("the leader was faster: %w", err)
	}
	return err
}
