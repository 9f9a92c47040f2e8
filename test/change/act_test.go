//go:build e2e || change

package change

import (
	"fmt"
	"strconv"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"

	slipwayv1alpha1 "github.com/slipway-dev/slipway/api/v1alpha1"
)

const (
	// most is how many routes come and go, at most, at a time; never is there none.
	most = 60
	// edited is a response field by which an edited route is recognised.
	edited = "X-Edition"
	// switchable is how many of the first routes are switched between blue and green.
	switchable = 4
)

// carryOut makes a change, and waits until status says that it is live. What lasts goes
// on meanwhile, but only one such thing at a time.
func (r *run) carryOut(c change) {
	r.Helper()
	if c.kind.lasting() {
		r.settled()
	}
	switch c.kind {
	case addRoute:
		r.addRoute(c)
	case removeRoute:
		r.removeRoute(c)
	case reorderRoutes:
		r.begin(c, "")
		c.random.Shuffle(len(r.routes), func(i, j int) { r.routes[i], r.routes[j] = r.routes[j], r.routes[i] })
		r.apply()
	case switchBackend:
		r.switchBackend(c)
	case editRoute:
		r.editRoute(c)
	case swapCertificate:
		r.swapCertificate(c)
	case rollBackend:
		color := []string{blue, green, abrupt}[c.random.IntN(3)]
		r.begin(c, color)
		r.restart(color)
	case scaleGateway:
		r.begin(c, "to "+fmt.Sprint(r.front.scale(r)))
	case rollGateway:
		r.roll(c)
	case switchListener:
		r.front.switchListener(r, c)
	}
}

// begin says what the change is.
func (r *run) begin(c change, detail string) {
	r.record.begin(fmt.Sprintf("change %d: %s %s", c.number, c.kind, detail))
}

func (r *run) addRoute(c change) {
	r.Helper()
	if r.extras.count() >= most {
		r.removeRoute(c)
		return
	}
	x := r.extras.next()
	r.begin(c, x.path)
	at := c.random.IntN(len(r.routes) + 1)
	color := []string{blue, green}[c.random.IntN(2)]
	r.routes = append(r.routes[:at:at], append([]slipwayv1alpha1.Route{route("", x.path, color, portHTTP1)}, r.routes[at:]...)...)
	r.apply()
	r.extras.add(x)
}

func (r *run) removeRoute(c change) {
	r.Helper()
	if r.extras.count() == 1 {
		r.addRoute(c)
		return
	}
	x := r.extras.take(c.random.IntN(r.extras.count()))
	r.begin(c, x.path)
	for i := range r.routes {
		if r.routes[i].Path == x.path {
			r.routes = append(r.routes[:i:i], r.routes[i+1:]...)
			break
		}
	}
	r.apply()
}

// switchBackend makes one of the routes that always are there lead elsewhere.
func (r *run) switchBackend(c change) {
	r.Helper()
	target := r.keptRoute([]string{"web", "h2", "streams", "grpc"}[c.random.IntN(switchable)])
	port := int32(0)
	if target.BackendService != nil {
		port = target.BackendService.Port
	} else {
		port = target.Backends[0].Port
	}
	target.Backends, target.BackendService = nil, nil
	share := int32(c.random.IntN(3)) // of green, in halves
	if share == 1 {
		r.begin(c, target.Name+" to both")
		target.Backends = []slipwayv1alpha1.WeightedBackend{{Name: blue, Port: port}, {Name: green, Port: port}}
		r.apply()
		return
	}
	color := []string{blue, "", green}[share]
	r.begin(c, target.Name+" to "+color)
	target.BackendService = &slipwayv1alpha1.BackendService{Name: slipwayv1alpha1.ServiceName(color), Port: port}
	r.apply()
	if target.Name != "grpc" {
		r.sees(target.Path, "X-Color", color)
	}
}

// editRoute gives the responses of a route another field.
func (r *run) editRoute(c change) {
	r.Helper()
	target := &r.routes[c.random.IntN(len(r.routes))]
	r.begin(c, target.Path)
	edition := strconv.Itoa(c.number)
	target.ResponseHeaders = &slipwayv1alpha1.HeaderEdit{Set: []slipwayv1alpha1.HeaderField{{Name: edited, Value: slipwayv1alpha1.HeaderValue(edition)}}}
	r.apply()
	if target.Name != "grpc" {
		r.sees(target.Path, edited, edition)
	}
}

// keptRoute returns one of the routes that always are there.
func (r *run) keptRoute(name string) *slipwayv1alpha1.Route {
	r.Helper()
	for i := range r.routes {
		if r.routes[i].Name == name {
			return &r.routes[i]
		}
	}
	r.Fatalf("there is no route %q", name)
	return nil
}

// sees checks that what status calls live is what a client gets.
func (r *run) sees(path, field, want string) {
	r.Helper()
	start := time.Now()
	got, err := r.get("http", path) //nolint:bodyclose,nolintlint // found now and then: it is closed by get
	if err == nil && got.header.Get(field) != want {
		err = fmt.Errorf("%s is %q, want %q", field, got.header.Get(field), want)
	}
	r.record.ended("HTTP/1.1, a look at what changed", start, path, err)
}

func (r *run) swapCertificate(c change) {
	r.Helper()
	data := r.authority.issue(r.T)
	serial := r.authority.serial
	r.begin(c, fmt.Sprintf("for number %d", serial))
	r.eventually(func() error {
		secret := &corev1.Secret{}
		if err := cluster.Get(r.Context(), r.key("cert"), secret); err != nil {
			return err
		}
		secret.Data = data
		return cluster.Update(r.Context(), secret)
	})
	r.eventually(func() error {
		got, err := r.get("https", "/web/") //nolint:bodyclose,nolintlint // found now and then: as above
		if err != nil {
			return err
		}
		if number := got.tls.PeerCertificates[0].SerialNumber.Int64(); number != serial {
			return fmt.Errorf("certificate number %d is served, want %d", number, serial)
		}
		return nil
	})
}

// restart is what kubectl rollout restart does.
func (r *run) restart(deployment string) {
	r.Helper()
	r.eventually(func() error {
		d := &appsv1.Deployment{}
		if err := cluster.Get(r.Context(), r.key(deployment), d); err != nil {
			return err
		}
		if d.Spec.Template.Annotations == nil {
			d.Spec.Template.Annotations = map[string]string{}
		}
		d.Spec.Template.Annotations["kubectl.kubernetes.io/restartedAt"] = time.Now().Format(time.RFC3339Nano)
		return cluster.Update(r.Context(), d)
	})
}

// roll replaces the gateway's pods: as a user who wants just that, or by another template, as an upgrade does.
func (r *run) roll(c change) {
	r.Helper()
	if c.random.IntN(2) == 0 {
		r.begin(c, "by a restart")
		r.restart(r.front.deployment(r))
		return
	}
	r.begin(c, "by another template")
	r.front.upgrade(r, c)
}

// apply writes the routes and waits until they are live.
func (r *run) apply() {
	r.Helper()
	r.front.apply(r)
	r.front.live(r)
}

// settled waits until no Deployment is rolling out or being scaled. Pods that end may
// still be there.
func (r *run) settled() {
	r.Helper()
	r.eventually(func() error {
		replicas, err := r.front.replicas(r)
		if err != nil {
			return err
		}
		for name, want := range map[string]int32{blue: 2, green: 2, abrupt: 2, r.front.deployment(r): replicas} {
			d := &appsv1.Deployment{}
			if err := cluster.Get(r.Context(), r.key(name), d); err != nil {
				return err
			}
			s := d.Status
			if s.ObservedGeneration != d.Generation || *d.Spec.Replicas != want || s.Replicas != want || s.UpdatedReplicas != want || s.AvailableReplicas != want {
				return fmt.Errorf("Deployment %s has %d pods, %d of them of its template and %d available, want %d", name, s.Replicas, s.UpdatedReplicas, s.AvailableReplicas, want)
			}
		}
		return nil
	})
}
