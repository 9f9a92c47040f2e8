// Package replica follows what every gateway pod says it serves.
//
// Each pod with an address has one goroutine, which asks the pod's admin port for its
// document and then asks again, with an answer that is held back until there is another
// one. It ends with the pod, and all end with the Follower. A change is told to whoever
// asked to be notified, by the name of the gateway.
//
//	replica.go   Follower: follows the pods of every gateway
//	follower.go  following one pod: what to ask next, and when
//	ask.go       a question to a pod, and its answer
//	share.go     what the pods of one namespace may cost the operator
//	pods.go      whether a pod can answer, and what it says of itself
//	problems.go  bounding how many problems of a pod are kept
package replica

import (
	"context"
	"net"
	"net/http"
	"strconv"
	"sync"
	"time"

	"golang.org/x/time/rate"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"

	"github.com/slipway-dev/slipway/internal/gateway/replica/document"
)

// Pod is a gateway pod to follow.
type Pod struct {
	// UID identifies the pod.
	UID types.UID
	// IP is where it is reached.
	IP string
	// Ready is what the kubelet says. A pod that has just become ready is asked at once.
	Ready bool
}

// State is how well a pod is known.
type State int

// The states.
const (
	// Asking: the pod has been asked for less than Patience and has not answered yet.
	Asking State = iota
	// Answering: Document is what the pod serves.
	Answering
	// Silent: the pod has not answered for longer than Patience.
	Silent
	// Incompatible: the pod answers what the operator does not understand.
	Incompatible
	// Crowded: the pods of its namespace say more than the operator keeps of one namespace.
	Crowded
)

// Answer is what is known of a pod.
type Answer struct {
	// State is how well it is known.
	State State
	// Document is the last one, nil when there is none yet. It must not be changed.
	Document *document.Document
	// Detail says what an Incompatible pod answered, and what to do about a Crowded one.
	Detail string
}

// Patience is how long a pod may not answer before it is Silent.
const Patience = time.Second

// Replicas is what controllers ask of pods. A Follower asks real ones.
type Replicas interface {
	// Follow makes these the pods of a gateway that are followed, and no others. What one says may be of the size.
	Follow(ctx context.Context, gateway types.NamespacedName, size document.Size, pods []Pod)
	// Answer returns what a followed pod last said.
	Answer(gateway types.NamespacedName, pod types.UID) Answer
	// Standby gives these pods the word that others are current, and takes it from the others.
	Standby(gateway types.NamespacedName, pods map[types.UID]bool)
}

var _ Replicas = (*Follower)(nil)

// Options configures a Follower.
type Options struct {
	// Port is the admin port of the gateway pods.
	Port int
	// Clock tells the time and waits. Default: the system's.
	Clock clock.Clock
}

// Follower follows pods.
type Follower struct {
	port   int
	clock  clock.Clock
	client *http.Client

	mutex    sync.Mutex
	notify   func(gateway types.NamespacedName)
	gateways map[types.NamespacedName]map[types.UID]*follower
	// shares are those of the namespaces of the gateways.
	shares  map[string]*share
	closed  bool
	running sync.WaitGroup
}

// New returns a Follower that follows nobody.
func New(options Options) *Follower {
	if options.Clock == nil {
		options.Clock = clock.RealClock{}
	}
	return &Follower{
		port:     options.Port,
		clock:    options.Clock,
		client:   newClient(),
		gateways: map[types.NamespacedName]map[types.UID]*follower{},
		shares:   map[string]*share{},
	}
}

// newClient returns a client that notices within seconds that a node is gone, though
// nothing is sent for half a minute: the kernel asks instead.
func newClient() *http.Client {
	dialer := &net.Dialer{
		Timeout:         Patience,
		KeepAliveConfig: net.KeepAliveConfig{Enable: true, Idle: time.Second, Interval: time.Second, Count: 2},
	}
	return &http.Client{
		Transport: &http.Transport{
			DialContext:         dialer.DialContext,
			MaxIdleConnsPerHost: 1,
			IdleConnTimeout:     time.Minute,
			// Nothing that costs more to read than it is long.
			MaxResponseHeaderBytes: 16 << 10,
			DisableCompression:     true,
		},
		// What is not from the pod itself is not its answer.
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
}

// Notify sets who is told that the answer of a pod of a gateway has changed. It must
// not block.
func (f *Follower) Notify(notify func(gateway types.NamespacedName)) {
	f.mutex.Lock()
	defer f.mutex.Unlock()
	f.notify = notify
}

// Follow makes these the pods of a gateway that are followed, and no others. What one says may
// be of the size. The values of the context live on in the goroutines, its end does not end
// them.
func (f *Follower) Follow(ctx context.Context, gateway types.NamespacedName, size document.Size, pods []Pod) {
	f.mutex.Lock()
	defer f.mutex.Unlock()
	if f.closed {
		return
	}
	before := f.gateways[gateway]
	after := make(map[types.UID]*follower, len(pods))
	for _, pod := range pods {
		known := before[pod.UID]
		if known == nil || known.ip != pod.IP {
			known = f.start(ctx, gateway, pod)
		} else if pod.Ready && !known.ready {
			known.hurry()
		}
		known.allow(size)
		known.ready = pod.Ready
		after[pod.UID] = known
	}
	for uid, known := range before {
		if after[uid] != known {
			known.stop()
		}
	}
	if len(after) > 0 {
		f.gateways[gateway] = after
		return
	}
	if len(before) == 0 {
		return
	}
	delete(f.gateways, gateway)
	for other := range f.gateways {
		if other.Namespace == gateway.Namespace {
			return
		}
	}
	delete(f.shares, gateway.Namespace)
}

// share returns that of a namespace. The mutex is held.
func (f *Follower) share(namespace string) *share {
	if f.shares[namespace] == nil {
		f.shares[namespace] = newShare(f.clock)
	}
	return f.shares[namespace]
}

// start begins to follow a pod. The mutex is held.
func (f *Follower) start(ctx context.Context, gateway types.NamespacedName, pod Pod) *follower {
	ctx, cancel := context.WithCancel(context.WithoutCancel(ctx))
	one := &follower{
		ip: pod.IP, url: "http://" + net.JoinHostPort(pod.IP, strconv.Itoa(f.port)) + document.Path,
		clock: f.clock, client: f.client, share: f.share(gateway.Namespace), stop: cancel, asked: make(chan struct{}, 1),
		pace:    rate.NewLimiter(rate.Every(asksEvery), asksAtOnce),
		failing: f.clock.Now(),
	}
	one.changed = func() { f.tell(gateway) }
	f.running.Go(func() { one.run(ctx) })
	return one
}

func (f *Follower) tell(gateway types.NamespacedName) {
	f.mutex.Lock()
	notify := f.notify
	f.mutex.Unlock()
	if notify != nil {
		notify(gateway)
	}
}

// Answer returns what is known of a pod of a gateway. One that is not followed has not
// answered yet.
func (f *Follower) Answer(gateway types.NamespacedName, pod types.UID) Answer {
	f.mutex.Lock()
	one := f.gateways[gateway][pod]
	f.mutex.Unlock()
	if one == nil {
		return Answer{}
	}
	return one.current()
}

// Standby gives these pods of a gateway the word that others are current, so that they take
// no new connections while they are stale. It takes it back from the others. A pod is told
// at once, and again with every question.
func (f *Follower) Standby(gateway types.NamespacedName, pods map[types.UID]bool) {
	f.mutex.Lock()
	defer f.mutex.Unlock()
	for uid, one := range f.gateways[gateway] {
		one.tell(pods[uid])
	}
}

// Start runs until the context ends and then ends every goroutine. It implements the
// manager's Runnable.
func (f *Follower) Start(ctx context.Context) error {
	<-ctx.Done()
	f.mutex.Lock()
	f.closed = true
	for _, pods := range f.gateways {
		for _, one := range pods {
			one.stop()
		}
	}
	f.gateways = map[types.NamespacedName]map[types.UID]*follower{}
	f.mutex.Unlock()
	f.running.Wait()
	f.client.CloseIdleConnections()
	return nil
}

// NeedLeaderElection tells the manager that only the leader follows pods.
func (f *Follower) NeedLeaderElection() bool { return true }
