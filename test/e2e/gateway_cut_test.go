//go:build e2e

package e2e

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"net"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	slipwayv1alpha1 "github.com/slipway-dev/slipway/api/v1alpha1"
	"github.com/slipway-dev/slipway/internal/testing/livecluster"
	"github.com/slipway-dev/slipway/internal/testing/livetest"
)

const (
	// cutGoal is how soon a replica that is cut off from the API server is named, and out of
	// service.
	cutGoal = 5 * time.Second
	// mendGoal is how soon it is back.
	mendGoal = 10 * time.Second
	// cutKeys is the Secret with the keys of one route.
	cutKeys = "keys"
	keyURL  = "http://any/key"
)

// A replica that does not hear the API server serves what it knew. It is named, and taken
// out of service while another one is current: then no request is lost, though every pod of
// the backend is replaced, a route is edited and a Secret changes. Where all are cut off, all
// serve on.
func TestAGatewayThatIsCutOffFromTheAPIServer(t *testing.T) {
	if !cluster.Local {
		t.Skip("cuts the network of a local cluster")
	}
	f := newGatewayFixture(newFixture(t))
	f.Create(f.app(func(app *slipwayv1alpha1.WebApp) { app.Spec.Replicas = ptr(int32(2)) }))
	f.Create(&corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: cutKeys}, Data: keyOf("old")})
	f.Create(f.cutGateway())
	f.waitGateway(gatewayReady(2, 3))
	f.Eventually(func() error { return f.endpointsOf(appName, 2) })
	load := f.loads("http://any/good")

	pod := &f.gatewayPods()[0]
	begin := time.Now()
	mend := f.cutOff(pod)
	before := f.readyAddresses(appName)
	f.deletePodAt(before[0])
	f.editGateway(func(s *slipwayv1alpha1.APIGatewaySpec) { s.Routes[2].DirectResponse.Body = "after" })
	f.editSecret(keyOf("new"))

	f.named(begin, pod.Name)
	gone := f.outOfService(begin, pod)
	f.replaced(before[0])
	f.deletePodAt(before[1])
	f.replaced(before[1])
	f.ended(before)
	f.servesOnlyTheNew()
	f.servesTheDead(pod)
	load.lostNoneSince(gone, "every pod of the backend replaced while one replica is cut off")

	mended := time.Now()
	mend()
	f.waitGateway(gatewayReady(2, 3))
	f.Measured("a replica that was cut off is back after %v", time.Since(mended).Round(time.Millisecond))
	if took := time.Since(mended); took > mendGoal {
		f.Errorf("back after %v, want at most %v", took, mendGoal)
	}
	f.allCutOff()
	f.wasTruthful()
}

// allCutOff cuts every replica off. Nothing changes, so nobody may see a difference.
func (f *gatewayFixture) allCutOff() {
	f.Helper()
	load := f.loads("http://any/good")
	since := time.Now()
	var mends []func()
	pods := f.gatewayPods()
	for i := range pods {
		mends = append(mends, f.cutOff(&pods[i]))
	}
	f.waitGateway(gatewayIs(slipwayv1alpha1.ConditionReady, metav1.ConditionFalse, slipwayv1alpha1.ReasonReplicaStale))
	// As long as it takes to take a replica out of service, twice.
	for time.Since(since) < 2*cutGoal {
		for i := range pods {
			pod := mustGet(f.fixture, pods[i].Name, &corev1.Pod{})
			if !podReady(pod) {
				f.Fatalf("pod %q is out of service %v after all were cut off, and no other is current", pod.Name, time.Since(since))
			}
		}
		f.mustAnswer(f.through(), "http://any/good", "Hello from ")
	}
	for _, mend := range mends {
		mend()
	}
	f.waitGateway(gatewayReady(2, 3))
	load.lostNoneSince(since, "all replicas cut off, and back")
}

// cutGateway has a route to the application, one with keys, and one that is edited.
func (f *gatewayFixture) cutGateway() *slipwayv1alpha1.APIGateway {
	gateway := f.troubledGateway()
	gateway.Spec.TLS = nil
	gateway.Spec.Routes = append(gateway.Spec.Routes,
		slipwayv1alpha1.Route{
			Name: "key", Path: "/key", DirectResponse: &slipwayv1alpha1.DirectResponse{StatusCode: 200},
			Auth: &slipwayv1alpha1.Auth{APIKey: &slipwayv1alpha1.APIKeyAuth{Header: "X-API-Key", SecretRef: slipwayv1alpha1.LocalReference{Name: cutKeys}}},
		},
		slipwayv1alpha1.Route{Name: "edited", Path: "/edited", DirectResponse: &slipwayv1alpha1.DirectResponse{StatusCode: 200, Body: "before"}})
	return gateway
}

func keyOf(key string) map[string][]byte {
	hash := sha256.Sum256([]byte(key))
	return map[string][]byte{"user": []byte("sha256:" + hex.EncodeToString(hash[:]))}
}

func (f *gatewayFixture) editSecret(data map[string][]byte) {
	f.Helper()
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: cutKeys, Namespace: f.Namespace}}
	update(f.fixture, secret, func(s *corev1.Secret) { s.Data = data })
}

// cutOff cuts a pod off from the API server until mend, or the end of the test.
func (f *gatewayFixture) cutOff(pod *corev1.Pod) (mend func()) {
	f.Helper()
	undo, err := cluster.CutOff(pod)
	if err != nil {
		f.Fatal(err)
	}
	mend = func() {
		if err := undo(); err != nil {
			f.Errorf("let pod %q reach the API server again: %v", pod.Name, err)
		}
	}
	f.Cleanup(mend)
	return mend
}

// named waits until status names the pod.
func (f *gatewayFixture) named(since time.Time, pod string) {
	f.Helper()
	says := func(gateway *slipwayv1alpha1.APIGateway) error {
		c := meta.FindStatusCondition(gateway.Status.Conditions, slipwayv1alpha1.ConditionReady)
		if c == nil || c.Reason != slipwayv1alpha1.ReasonReplicaStale || !strings.Contains(c.Message, pod) {
			return fmt.Errorf("Ready is %+v, want %s and %s", c, slipwayv1alpha1.ReasonReplicaStale, pod)
		}
		return nil
	}
	f.waitGateway(says)
	said := f.said.First(since, "the replica is named", func(s livetest.Sighting) bool {
		gateway, ok := s.Object.(*slipwayv1alpha1.APIGateway)
		return ok && gateway.Name == gatewayName && content(gateway, []gatewayCheck{says}) == nil
	})
	took := said.At.Sub(since).Round(time.Millisecond)
	f.Measured("a replica that is cut off is named after %v", took)
	if took > cutGoal {
		f.Errorf("named after %v, want at most %v", took, cutGoal)
	}
}

// outOfService waits until the pod's endpoint gets nothing new, and returns since when.
func (f *gatewayFixture) outOfService(since time.Time, pod *corev1.Pod) time.Time {
	f.Helper()
	f.Eventually(func() error {
		if slices.Contains(f.readyAddresses(gatewayName), pod.Status.PodIP) {
			return fmt.Errorf("%s is still an endpoint", pod.Status.PodIP)
		}
		return nil
	})
	took := time.Since(since).Round(time.Millisecond)
	f.Measured("a replica that is cut off is out of service after %v", took)
	if took > cutGoal {
		f.Errorf("out of service after %v, want at most %v", took, cutGoal)
	}
	// kube-proxy hears of it when this test does, and takes a moment for its rules.
	settled := time.NewTimer(time.Second)
	<-settled.C
	return time.Now()
}

// readyAddresses are those of the ready endpoints of a Service.
func (f *gatewayFixture) readyAddresses(service string) []string {
	f.Helper()
	list := &discoveryv1.EndpointSliceList{}
	if err := cluster.List(f.Context(), list, client.InNamespace(f.Namespace), client.MatchingLabels{discoveryv1.LabelServiceName: service}); err != nil {
		f.Fatal(err)
	}
	var addresses []string
	for _, slice := range list.Items {
		for _, endpoint := range slice.Endpoints {
			if endpoint.Conditions.Ready == nil || *endpoint.Conditions.Ready {
				addresses = append(addresses, endpoint.Addresses...)
			}
		}
	}
	slices.Sort(addresses)
	return addresses
}

func (f *gatewayFixture) endpointsOf(service string, count int) error {
	if got := f.readyAddresses(service); len(got) != count {
		return fmt.Errorf("the endpoints of %s are %v, want %d", service, got, count)
	}
	return nil
}

// deletePodAt deletes the application's pod with that address.
func (f *gatewayFixture) deletePodAt(address string) {
	f.Helper()
	for _, pod := range f.pods() {
		if pod.Status.PodIP == address {
			f.Delete(&pod)
		}
	}
}

// replaced waits until another pod has taken the place of the one with that address.
func (f *gatewayFixture) replaced(address string) {
	f.Helper()
	f.Eventually(func() error {
		if slices.Contains(f.readyAddresses(appName), address) {
			return fmt.Errorf("%s is still an endpoint", address)
		}
		return f.endpointsOf(appName, 2)
	})
}

// ended waits until no pod has any of these addresses any more.
func (f *gatewayFixture) ended(addresses []string) {
	f.Helper()
	f.Eventually(func() error {
		list := &corev1.PodList{}
		if err := cluster.List(f.Context(), list, client.InNamespace(f.Namespace)); err != nil {
			return err
		}
		for i := range list.Items {
			if slices.Contains(addresses, list.Items[i].Status.PodIP) {
				return fmt.Errorf("pod %q is still there", list.Items[i].Name)
			}
		}
		return nil
	})
}

// servesTheDead asks the replica that is cut off: if it could serve, nothing would be shown.
func (f *gatewayFixture) servesTheDead(pod *corev1.Pod) {
	f.Helper()
	through := &http.Client{Timeout: 2 * time.Second}
	defer through.CloseIdleConnections()
	if body, err := livecluster.Ask(f.Context(), through, "http://"+net.JoinHostPort(pod.Status.PodIP, "8080")+"/good"); err == nil {
		f.Errorf("the replica that is cut off answers %q: the test proves nothing", body)
	}
}

// servesOnlyTheNew asks often enough to meet every replica that is in service.
func (f *gatewayFixture) servesOnlyTheNew() {
	f.Helper()
	through := f.through()
	for range 40 {
		f.mustAnswer(through, "http://any/edited", "after")
		for key, want := range map[string]int{"new": http.StatusOK, "old": http.StatusUnauthorized} {
			request, err := http.NewRequestWithContext(f.Context(), http.MethodGet, keyURL, http.NoBody)
			if err != nil {
				f.Fatal(err)
			}
			request.Header.Set("X-API-Key", key)
			response, err := through.Do(request)
			if err != nil {
				f.Fatal(err)
			}
			_ = response.Body.Close()
			if response.StatusCode != want {
				f.Errorf("the %s key is answered with %s, want %d", key, response.Status, want)
			}
		}
	}
}

func podReady(pod *corev1.Pod) bool {
	return slices.ContainsFunc(pod.Status.Conditions, func(c corev1.PodCondition) bool {
		return c.Type == corev1.PodReady && c.Status == corev1.ConditionTrue
	})
}

// load is a stream of requests of several clients, of which half keep their connections.
type load struct {
	f      *gatewayFixture
	cancel context.CancelFunc
	done   sync.WaitGroup

	mutex    sync.Mutex
	requests []request
}

// request is when one began and how it ended.
type request struct {
	begin time.Time
	err   error
}

// loads requests an URL until lostNoneSince.
func (f *gatewayFixture) loads(url string) *load {
	f.Helper()
	ctx, cancel := context.WithCancel(f.Context())
	l := &load{f: f, cancel: cancel}
	for i := range 8 {
		through := f.through()
		through.Transport.(*http.Transport).DisableKeepAlives = i%2 == 0
		l.done.Go(func() {
			defer through.CloseIdleConnections()
			ticker := time.NewTicker(5 * livetest.RequestInterval)
			defer ticker.Stop()
			for ctx.Err() == nil {
				l.ask(ctx, through, url)
				select {
				case <-ctx.Done():
				case <-ticker.C:
				}
			}
		})
	}
	f.Cleanup(func() { cancel(); l.done.Wait() })
	return l
}

func (l *load) ask(ctx context.Context, through *http.Client, url string) {
	one := request{begin: time.Now()}
	asked, err := http.NewRequestWithContext(ctx, http.MethodGet, url, http.NoBody)
	if err != nil {
		return
	}
	response, err := through.Do(asked)
	if err == nil {
		_, err = io.Copy(io.Discard, response.Body)
		_ = response.Body.Close()
		if response.StatusCode != http.StatusOK {
			err = fmt.Errorf("status %s", response.Status)
		}
	}
	if ctx.Err() != nil {
		return
	}
	one.err = err
	l.mutex.Lock()
	defer l.mutex.Unlock()
	l.requests = append(l.requests, one)
}

// lostNoneSince ends the requests and fails the test if one that began since then was lost.
func (l *load) lostNoneSince(since time.Time, during string) {
	l.f.Helper()
	l.cancel()
	l.done.Wait()
	var before, after, lostBefore int
	var lost []string
	for _, r := range l.requests {
		late := r.begin.After(since)
		switch {
		case late && r.err != nil:
			lost = append(lost, fmt.Sprintf("%v after: %v", r.begin.Sub(since).Round(time.Millisecond), r.err))
			after++
		case late:
			after++
		case r.err != nil:
			lostBefore++
			before++
		default:
			before++
		}
	}
	l.f.Measured("%s: %d of %d requests lost, %d of %d before", during, len(lost), after, lostBefore, before)
	if len(lost) > 0 {
		l.f.Errorf("%d requests lost, such as %s", len(lost), strings.Join(lost[:min(3, len(lost))], "; "))
	}
	if after < livetest.EnoughRequests {
		l.f.Errorf("only %d requests: the test proves nothing", after)
	}
}
