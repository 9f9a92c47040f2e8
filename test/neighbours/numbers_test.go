package neighbours

import (
	"encoding/json"
	"maps"
	"runtime"
	"slices"
	"syscall"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"

	slipwayv1alpha1 "github.com/slipway-dev/slipway/api/v1alpha1"
	"github.com/slipway-dev/slipway/internal/backup/mover"
	apigateway "github.com/slipway-dev/slipway/internal/controller/apigateway/desired"
	backup "github.com/slipway-dev/slipway/internal/controller/backup/desired"
	backuprun "github.com/slipway-dev/slipway/internal/controller/backuprun/desired"
	gateway "github.com/slipway-dev/slipway/internal/controller/gateway/desired"
	restore "github.com/slipway-dev/slipway/internal/controller/restore/desired"
	webapp "github.com/slipway-dev/slipway/internal/controller/webapp/desired"
	frontend "github.com/slipway-dev/slipway/internal/gateway/frontend/apigateway"
	"github.com/slipway-dev/slipway/internal/gateway/frontend/gatewayapi"
	"github.com/slipway-dev/slipway/internal/gateway/model"
	"github.com/slipway-dev/slipway/internal/gateway/proxy"
	"github.com/slipway-dev/slipway/internal/gateway/table"
	"github.com/slipway-dev/slipway/internal/monitor/rule"
	"github.com/slipway-dev/slipway/internal/schedule"
)

var noon = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

// work is what is computed of an object of each kind, without a cluster.
func work(t *testing.T) map[string]func(raw []byte) error {
	t.Helper()
	rules, err := rule.NewCompiler(rule.Limits{})
	if err != nil {
		t.Fatal(err)
	}
	return map[string]func(raw []byte) error{
		"WebApp": decoded(workOnWebApp), "APIGateway": decoded(workOnAPIGateway), "GatewayParameters": decoded(workOnParameters),
		"GatewayPolicy": decoded(workOnPolicy), "Backup": decoded(workOnBackup), "BackupRun": decoded(workOnRun), "Restore": decoded(workOnRestore),
		"MonitorRule": decoded(func(from *slipwayv1alpha1.MonitorRule) { rules.Compile(from) }),
	}
}

func decoded[T any](work func(*T)) func(raw []byte) error {
	return func(raw []byte) error {
		object := new(T)
		if err := json.Unmarshal(raw, object); err != nil {
			return err
		}
		work(object)
		return nil
	}
}

func workOnWebApp(app *slipwayv1alpha1.WebApp) {
	revision := webapp.RevisionOf(app.Spec, "")
	_, _ = webapp.Intent(app.Spec, "")
	replicas := webapp.MinReplicas(app)
	webapp.Deployment(webapp.Inputs{App: app, Revision: revision, Replicas: &replicas})
	webapp.Service(app, 1)
	webapp.HorizontalPodAutoscaler(app)
	webapp.PodDisruptionBudget(app)
	if app.Spec.Storage != nil {
		webapp.PersistentVolumeClaim(app)
	}
}

var backends = map[model.ServiceName]model.Service{
	{Name: "app"}: {Ports: map[int32]model.ServicePort{1: {}, 65535: {}}}, {Namespace: "team", Name: "app"}: {Ports: map[int32]model.ServicePort{1: {}, 65535: {}}},
}

func workOnAPIGateway(g *slipwayv1alpha1.APIGateway) {
	replicas := apigateway.MinReplicas(g)
	apigateway.Deployment(apigateway.Inputs{Gateway: g, Image: "gateway", Replicas: &replicas})
	apigateway.Service(g)
	apigateway.HorizontalPodAutoscaler(g)
	apigateway.PodDisruptionBudget(g)
	apigateway.Role(g)
	apigateway.Ingress(g, nil)
	apigateway.HTTPRoutes(g, nil, nil)
	_, _ = proxy.NewConfig(&g.Spec)
	_, _ = frontend.Compile(frontend.Input{
		Routes: g.Spec.Routes, BackendPolicies: g.Spec.BackendPolicies, HealthChecks: g.Spec.HealthChecks, Streams: g.Spec.Streams,
		Services: map[string]model.Service{"app": {Ports: map[int32]model.ServicePort{1: {}, 65535: {}}}},
	})
}

func workOnParameters(p *slipwayv1alpha1.GatewayParameters) {
	gateway.Contradiction(p.Spec)
	gateway.Settings(p.Spec).Arguments()
	in := gateway.Inputs{Gateway: someGateway(), Image: "gateway", Parameters: p.Spec}
	gateway.Deployment(in)
	gateway.Service(in)
	gateway.HorizontalPodAutoscaler(in)
	gateway.PodDisruptionBudget(in)
}

func someGateway() *gatewayv1.Gateway {
	return &gatewayv1.Gateway{
		ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: "app", UID: "gateway"},
		Spec:       gatewayv1.GatewaySpec{GatewayClassName: "c", Listeners: []gatewayv1.Listener{{Name: "app", Port: 80, Protocol: gatewayv1.HTTPProtocolType}}},
	}
}

func workOnPolicy(policy *slipwayv1alpha1.GatewayPolicy) {
	port := gatewayv1.PortNumber(1)
	route := &gatewayv1.HTTPRoute{ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: "app", UID: "route"}}
	route.Spec.ParentRefs = []gatewayv1.ParentReference{{Name: "app"}}
	route.Spec.Rules = []gatewayv1.HTTPRouteRule{{BackendRefs: []gatewayv1.HTTPBackendRef{{
		BackendRef: gatewayv1.BackendRef{BackendObjectReference: gatewayv1.BackendObjectReference{Name: "app", Port: &port}},
	}}}}
	made := gatewayapi.Build(gatewayapi.Input{
		Gateway: someGateway(), HTTPRoutes: []*gatewayv1.HTTPRoute{route}, GatewayPolicies: []*slipwayv1alpha1.GatewayPolicy{policy},
		Services: map[types.NamespacedName]gatewayapi.Service{{Namespace: "team", Name: "app"}: {Ports: map[int32]gatewayapi.Port{1: {}}}},
	})
	_, _ = table.Compile(made.Table(backends))
}

func workOnBackup(b *slipwayv1alpha1.Backup) {
	place, err := mover.ParseDestination(b.Spec.Destination)
	if err != nil {
		return
	}
	_, _ = mover.ParseSource(b.Spec.Source)
	_, _ = schedule.ParseRetentionPolicy(b.Spec.RetentionPolicy)
	workOnSchedule(b.Spec.Schedule, b.Spec.TimeZone)
	backup.Rules(b)
	backup.Retention(b)
	_, _ = backup.Job(backup.Inputs{Backup: b, Place: place, Name: "job", Steps: backup.KeepSteps(b, true), Deadline: time.Hour})
	run := &slipwayv1alpha1.BackupRun{ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: "run"}}
	in := backuprun.Inputs{Run: run, Backup: b, Place: place, Claim: "app", Attempt: 1, Deadline: time.Hour}
	if b.Spec.Dump != nil {
		in.Dump = backuprun.Dump(b, &corev1.Container{Name: "app"}, nil)
	}
	_, _ = backuprun.Job(in)
	if b.Spec.Verify != nil && b.Spec.Verify.Drill != nil {
		workOnSchedule(b.Spec.Verify.Drill.Schedule, b.Spec.TimeZone)
		_, _ = backup.DrillJob(backup.DrillInputs{Backup: b, Place: place, Drill: "drill", Attempt: 1, Run: run, Deadline: time.Hour})
	}
}

// workOnSchedule looks from a time that is long ago.
func workOnSchedule(cron, zone string) {
	s, err := schedule.Parse(cron, zone)
	if err != nil {
		return
	}
	s.Advice(cron, noon)
	for _, last := range []time.Time{{}, noon.AddDate(-50, 0, 0), noon.Add(-time.Hour)} {
		s.Due(last, noon, 0)
		s.Due(last, noon, time.Nanosecond)
	}
}

func workOnRun(run *slipwayv1alpha1.BackupRun) {
	b := &slipwayv1alpha1.Backup{ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: "app"}}
	_, _ = backuprun.Job(backuprun.Inputs{Run: run, Backup: b, Claim: "app", Attempt: 1, Deadline: time.Hour})
}

func workOnRestore(r *slipwayv1alpha1.Restore) {
	_, _ = restore.Job(restore.Inputs{Restore: r, Attempt: 1, Deadline: time.Hour})
	if r.Spec.Target.Create != nil {
		restore.Claim(r)
	}
}

// extremes are the smallest and the largest values that a field takes.
func extremes(s *schema) []any {
	var values []any
	switch s.Type {
	case "integer", "number":
		for _, bound := range []*float64{s.Minimum, s.Maximum} {
			if bound != nil {
				values = append(values, *bound)
			}
		}
	case "array":
		if s.MaxItems != nil {
			list := []any{}
			for range min(*s.MaxItems, 4096) {
				list = append(list, smallest(s.Items.Schema))
			}
			values = append(values, list)
		}
	case "string":
		if s.Pattern == "" {
			break
		}
		for _, text := range []string{
			"1ns", "1ms", "2562047h", "999999h", "99999s", "99999999d", "9999y", "9999y9999mo9999w9999d9999h", "1h", "* * * * *", "*/1 * * * *", "0 0 29 2 *",
			"::/0", "0.0.0.0/0",
		} {
			if takes(s, text) {
				values = append(values, text)
			}
		}
	}
	if s.XIntOrString {
		values = append(values, "1n", "9E", "9223372036854775807", "999999999999999999999999999999E")
	}
	return values
}

// cost is what some work takes: memory, and time of the processor.
func cost(t *testing.T, work func() error) (bytes uint64, took time.Duration, err error) {
	t.Helper()
	used := func() time.Duration {
		var usage syscall.Rusage
		if err := syscall.Getrusage(syscall.RUSAGE_SELF, &usage); err != nil {
			t.Fatal(err)
		}
		return time.Duration(usage.Utime.Nano() + usage.Stime.Nano())
	}
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	start := used()
	err = work()
	took = used() - start
	runtime.ReadMemStats(&after)
	return after.TotalAlloc - before.TotalAlloc, took, err
}

// What a tenant writes costs time and memory by how much he writes, and not by how large a number is.
func TestNoNumberInASpecCostsByItsSize(t *testing.T) {
	all, tried := schemas(t), 0
	works := work(t)
	for _, kind := range slices.Sorted(maps.Keys(all)) {
		if works[kind] == nil {
			t.Errorf("nothing is computed of a %s", kind)
			continue
		}
		walk(all[kind], nil, func(s *schema, path []string) {
			for _, value := range extremes(s) {
				raw, err := json.Marshal(map[string]any{
					"metadata": map[string]any{"name": "app", "namespace": "team", "uid": "uid"}, "spec": build(all[kind], path, value),
				})
				if err != nil {
					t.Fatal(err)
				}
				// A list may cost as much as it is long, and no more.
				length := 1
				if list, ok := value.([]any); ok {
					length = len(list)
				}
				bytes, took, err := cost(t, func() error { return works[kind](raw) })
				tried++
				if err != nil {
					t.Errorf("%s: %v", fieldName(kind, path, value), err)
				}
				most, longest := uint64(8<<20+length*64<<10), time.Second+time.Duration(length)*10*time.Millisecond
				if bytes > most || took > longest {
					t.Errorf("%s: %d KiB and %v, want at most %d KiB and %v", fieldName(kind, path, value), bytes>>10, took, most>>10, longest)
				}
			}
		})
	}
	if tried < 300 {
		t.Errorf("only %d values were tried", tried)
	}
	t.Logf("%d values", tried)
}

// The numbers in objects of others cost nothing by their size either.
func TestNoNumberOfAnotherObjectCostsByItsSize(t *testing.T) {
	most, weight := int32(1<<31-1), int32(1_000_000)
	route := &gatewayv1.HTTPRoute{ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: "app", UID: "route"}}
	route.Spec.ParentRefs = []gatewayv1.ParentReference{{Name: "app"}}
	port, attempts, code := gatewayv1.PortNumber(1), int(most), gatewayv1.HTTPRouteRetryStatusCode(503)
	long := gatewayv1.Duration("99999h")
	for range 16 {
		rule := gatewayv1.HTTPRouteRule{
			Timeouts: &gatewayv1.HTTPRouteTimeouts{Request: &long, BackendRequest: &long},
			Retry:    &gatewayv1.HTTPRouteRetry{Attempts: &attempts, Backoff: &long, Codes: []gatewayv1.HTTPRouteRetryStatusCode{code}},
		}
		for range 16 {
			rule.BackendRefs = append(rule.BackendRefs, gatewayv1.HTTPBackendRef{BackendRef: gatewayv1.BackendRef{
				Weight: &weight, BackendObjectReference: gatewayv1.BackendObjectReference{Name: "app", Port: &port},
			}})
		}
		route.Spec.Rules = append(route.Spec.Rules, rule)
	}
	deployment := &appsv1.Deployment{Spec: appsv1.DeploymentSpec{Replicas: &most}, Status: appsv1.DeploymentStatus{Replicas: most, ReadyReplicas: most}}
	for name, work := range map[string]func() error{
		"weights, retries and timeouts": func() error {
			made := gatewayapi.Build(gatewayapi.Input{
				Gateway: someGateway(), HTTPRoutes: []*gatewayv1.HTTPRoute{route},
				Services: map[types.NamespacedName]gatewayapi.Service{{Namespace: "team", Name: "app"}: {Ports: map[int32]gatewayapi.Port{1: {}}}},
			})
			table.Compile(made.Table(backends))
			return nil
		},
		"replicas of a Deployment": func() error {
			in := gateway.Inputs{Gateway: someGateway(), Image: "gateway", Current: deployment, Replicas: &most}
			gateway.Deployment(in)
			gateway.PodDisruptionBudget(in)
			return nil
		},
	} {
		if bytes, took, err := cost(t, work); err != nil || bytes > 8<<20 || took > time.Second {
			t.Errorf("%s: %d KiB and %v, %v, want at most 8192 KiB and 1s", name, bytes>>10, took, err)
		}
	}
}
