//go:build peers

package peers

import (
	"context"
	"fmt"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"

	"github.com/slipway-dev/slipway/internal/testing/livetest"
	"github.com/slipway-dev/slipway/internal/testing/objectwatch"
)

// route has a path of its own, /name, and one backend.
func route(name, backend string) *gatewayv1.HTTPRoute {
	return &gatewayv1.HTTPRoute{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: gatewayv1.HTTPRouteSpec{
		CommonRouteSpec: gatewayv1.CommonRouteSpec{ParentRefs: []gatewayv1.ParentReference{{Name: gateway}}},
		Hostnames:       []gatewayv1.Hostname{host},
		Rules:           []gatewayv1.HTTPRouteRule{ruleTo("/"+name, backend)},
	}}
}

func ruleTo(path, backend string) gatewayv1.HTTPRouteRule {
	return gatewayv1.HTTPRouteRule{
		Matches: []gatewayv1.HTTPRouteMatch{{Path: &gatewayv1.HTTPPathMatch{Type: new(gatewayv1.PathMatchPathPrefix), Value: &path}}},
		BackendRefs: []gatewayv1.HTTPBackendRef{{BackendRef: gatewayv1.BackendRef{BackendObjectReference: gatewayv1.BackendObjectReference{
			Name: gatewayv1.ObjectName(backend), Port: new(gatewayv1.PortNumber(80)),
		}}}},
	}
}

// ofCrowd is the label of the routes of the crowd.
const ofCrowd = "example.com/crowd"

// member is a route of the crowd.
type member struct {
	name, color string
	created     atomic.Bool
	live        atomic.Bool
}

// newMember makes the next one. Neighbours have different backends.
func newMember(number int) *member {
	return &member{name: fmt.Sprintf("crowd-%d", number), color: []string{blue, green}[number%2]}
}

// verdicts count the answers of a crowd that are wrong.
type verdicts struct {
	// early are answers of a route that did not serve yet, other than 404: an error, or a backend that is not its own.
	early atomic.Int64
	// lost are answers of a route that had served already, other than its own backend's.
	lost atomic.Int64
	// asked are all requests.
	asked atomic.Int64
}

// awaitLive asks for every member until it has answered once, and for those that have again and again. It returns when all have.
func awaitLive(ctx context.Context, a *asker, members []*member, v *verdicts) error {
	const askers = 4
	errs := make([]error, askers)
	var wait sync.WaitGroup
	for i := range askers {
		wait.Go(func() { errs[i] = sweep(ctx, a, members, i, askers, v) })
	}
	wait.Wait()
	for _, err := range errs {
		if err != nil {
			return err
		}
	}
	return nil
}

// sweep asks for each of those members that have the number of the sweeper.
func sweep(ctx context.Context, a *asker, members []*member, number, of int, v *verdicts) error {
	var live []*member
	ticker := time.NewTicker(5 * time.Millisecond)
	defer ticker.Stop()
	for {
		waiting := 0
		for i := number; i < len(members); i += of {
			m := members[i]
			if m.live.Load() {
				continue
			}
			waiting++
			if !m.created.Load() {
				continue
			}
			status, color, err := a.ask(ctx, "/"+m.name)
			if ctx.Err() != nil {
				return fmt.Errorf("%s does not serve: %w", m.name, ctx.Err())
			}
			v.asked.Add(1)
			switch {
			case err == nil && status == http.StatusOK && color == m.color:
				m.live.Store(true)
				live = append(live, m)
			case err != nil || status != http.StatusNotFound:
				v.early.Add(1)
			}
			if len(live) > 0 {
				again := live[int(v.asked.Add(1))%len(live)]
				if a.check(ctx, "/"+again.name, again.color) != nil && ctx.Err() == nil {
					v.lost.Add(1)
				}
			}
		}
		if waiting == 0 {
			return nil
		}
		<-ticker.C
	}
}

// statuses follows what the contender writes. A watch shows every write.
type statuses struct {
	controller gatewayv1.GatewayController

	mu            sync.Mutex
	settled       map[string]bool // by name of a route
	attached      int32           // of the one listener
	routeWrites   map[string]int
	gatewayWrites int
}

// followStatuses begins before anything is written. It ends with the test.
func followStatuses(f *livetest.Fixture, controller string) *statuses {
	f.Helper()
	s := &statuses{controller: gatewayv1.GatewayController(controller), settled: map[string]bool{}, routeWrites: map[string]int{}}
	for _, list := range []client.ObjectList{&gatewayv1.HTTPRouteList{}, &gatewayv1.GatewayList{}} {
		stop, _, err := objectwatch.Follow(context.WithoutCancel(f.Context()), f.Cluster, list, s.note, client.InNamespace(f.Namespace))
		if err != nil {
			f.Fatal(err)
		}
		f.Cleanup(stop)
	}
	return s
}

func (s *statuses) note(e watch.Event) {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch object := e.Object.(type) {
	case *gatewayv1.HTTPRoute:
		if e.Type == watch.Deleted {
			delete(s.settled, object.Name)
			return
		}
		s.settled[object.Name] = s.isSettled(object)
		if e.Type == watch.Modified {
			s.routeWrites[object.Name]++
		}
	case *gatewayv1.Gateway:
		s.gatewayWrites++
		for i := range object.Status.Listeners {
			s.attached = object.Status.Listeners[i].AttachedRoutes
		}
	}
}

// isSettled reports whether the contender has accepted the route as it is now.
func (s *statuses) isSettled(r *gatewayv1.HTTPRoute) bool {
	for i := range r.Status.Parents {
		parent := &r.Status.Parents[i]
		if parent.ControllerName != s.controller {
			continue
		}
		for _, kind := range []gatewayv1.RouteConditionType{gatewayv1.RouteConditionAccepted, gatewayv1.RouteConditionResolvedRefs} {
			c := meta.FindStatusCondition(parent.Conditions, string(kind))
			if c == nil || c.Status != metav1.ConditionTrue || c.ObservedGeneration != r.Generation {
				return false
			}
		}
		return true
	}
	return false
}

// allSettled returns an error unless so many routes have the statuses that they should have.
func (s *statuses) allSettled(routes int) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	settled := 0
	for _, one := range s.settled {
		if one {
			settled++
		}
	}
	if settled != routes {
		return fmt.Errorf("%d routes are accepted, want %d", settled, routes)
	}
	return nil
}

// counted returns an error unless the listener counts so many routes.
func (s *statuses) counted(routes int) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if int(s.attached) != routes {
		return fmt.Errorf("the listener counts %d routes, want %d", s.attached, routes)
	}
	return nil
}

// writes returns how often routes and the Gateway were written since the last call.
func (s *statuses) writes() (all, most, gateways int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, count := range s.routeWrites {
		all, most = all+count, max(most, count)
	}
	gateways = s.gatewayWrites
	clear(s.routeWrites)
	s.gatewayWrites = 0
	return all, most, gateways
}
