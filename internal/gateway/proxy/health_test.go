package proxy

import (
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"
	testingclock "k8s.io/utils/clock/testing"

	"github.com/slipway-dev/slipway/internal/gateway/model"
	"github.com/slipway-dev/slipway/internal/gateway/table"
	"github.com/slipway-dev/slipway/internal/gateway/upstream"
)

// patient answers checks with a status that the test sets. It counts all other requests.
type patient struct {
	address  string
	status   atomic.Int64
	requests atomic.Int64
	protocol atomic.Value // of the last check
}

func newPatient(t *testing.T, status int64) *patient {
	p := &patient{}
	p.status.Store(status)
	p.address = serve(t, func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/healthz" {
			p.requests.Add(1)
			return
		}
		p.protocol.Store(r.Proto)
		w.WriteHeader(int(p.status.Load()))
	})
	return p
}

// withCheck adds a health check to every backend of a table, as the spec would.
func withCheck(in *table.Table) *table.Table {
	for _, backend := range in.Backends {
		backend.HealthCheck = &model.HealthCheck{Path: "/healthz", Period: time.Second, Timeout: 10 * time.Second, Healthy: 1, Unhealthy: 2}
	}
	return in
}

func TestHealthChecks(t *testing.T) {
	sick, well := newPatient(t, 503), newPatient(t, 200)
	clock := testingclock.NewFakeClock(time.Now())
	changes := make(chan string, 10)
	registry := prometheus.NewPedanticRegistry()
	compiled := func() *table.Table { return compile(t, toApp, nil, sick.address, well.address) }
	g := startTable(t, Options{Clock: clock, Metrics: registry, HealthChanged: func(backend, endpoint string, err error) {
		change := backend + " " + endpoint + " healthy"
		if err != nil {
			change = backend + " " + err.Error()
		}
		changes <- change
	}}, withCheck(compiled()))
	sent := 0.0
	next := func() (change string) {
		t.Helper()
		eventually(t, "health changes", func() bool {
			select {
			case change = <-changes:
				return true
			default:
				clock.Step(100 * time.Millisecond)
				return false
			}
		})
		return change
	}
	// reach sends requests until the expected endpoint gets one. A check in flight counts
	// as load.
	reach := func(what string, toSick bool) {
		t.Helper()
		before := [2]int64{sick.requests.Load(), well.requests.Load()}
		eventually(t, what, func() bool {
			for range 40 {
				sent++
				if response, _ := g.get("/"); response.StatusCode != http.StatusOK {
					t.Errorf("got %d", response.StatusCode)
				}
			}
			return well.requests.Load() > before[1] && (!toSick || sick.requests.Load() > before[0])
		})
		want(t, what+": requests to the sick one", sick.requests.Load() > before[0], toSick)
	}
	reach("before any check", true)
	want(t, "change", next(), "app:80 "+sick.address+": the answer is 503")
	reach("one is unhealthy", false)
	g.handler.Set(Config{Table: withCheck(compiled())})
	reach("after another table", false)

	counted := series(t, registry)
	if counted["slipway_gateway_health_checks_total 80 error app"] < 2 || counted["slipway_gateway_health_checks_total 80 ok app"] < 1 {
		t.Errorf("checks are not counted: %v", counted)
	}
	eventually(t, "all requests are counted, and no check", func() bool { return series(t, registry)["slipway_gateway_requests_total / 2xx"] == sent })

	sick.status.Store(204)
	want(t, "change", next(), "app:80 "+sick.address+" healthy")
	reach("it is healthy again", true)
	sick.status.Store(500)
	want(t, "change", next(), "app:80 "+sick.address+": the answer is 500")
	g.handler.Set(Config{Table: compiled()})
	reach("without a check", true)
	for name := range series(t, registry) {
		if strings.Contains(name, "health_checks") {
			t.Errorf("left of a check that is no more: %s", name)
		}
	}
}

func TestChecksSpeakWhatRequestsSpeak(t *testing.T) {
	for service, protocol := range map[string]string{"app": "HTTP/1.1", "h2": "HTTP/2.0"} {
		backend := newPatient(t, 200)
		clock := testingclock.NewFakeClock(time.Now())
		startTable(t, Options{Clock: clock}, withCheck(compile(t, `[{backendService: {name: `+service+`, port: 80}}]`, nil, backend.address)))
		eventually(t, "it is checked", func() bool {
			clock.Step(100 * time.Millisecond)
			return backend.protocol.Load() != nil
		})
		want(t, service, backend.protocol.Load(), any(protocol))
	}
}

func TestHowABackendIsChecked(t *testing.T) {
	in := model.Backend{Protocol: model.ProtocolH2C, HealthCheck: &model.HealthCheck{
		Path: "/p", Host: "h", Period: 1, Timeout: 2, Healthy: 3, Unhealthy: 4,
	}}
	wanted := upstream.Check{Protocol: upstream.HTTP2, Path: "/p", Host: "h", Period: 1, Timeout: 2, Healthy: 3, Unhealthy: 4}
	if diff := cmp.Diff(wanted, checkOf(&in)); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	want(t, "no check", checkOf(&model.Backend{}), upstream.Check{})
}
