package status

import (
	"fmt"
	"sync"

	"golang.org/x/time/rate"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/tools/events"
	"k8s.io/utils/lru"

	"github.com/slipway-dev/slipway/internal/redact"
)

const (
	// eventsAtOnce is how many Events there may be about objects of a namespace at once, and eventsPerSecond in the long run.
	// client-go keeps each of them for six minutes at least, and tells of them one after the other while all others wait. Status says
	// what an Event says that is left out.
	eventsAtOnce    = 500
	eventsPerSecond = 1
	// eventNamespaces is of how many namespaces it is remembered how many Events they had.
	eventNamespaces = 4096
)

// Recorder returns a recorder of events that hides secrets in their notes, because what others said may be quoted in one, and that
// leaves out what is too much for one namespace.
func Recorder(to events.EventRecorder) events.EventRecorder {
	return &recorder{to: to, namespaces: lru.New(eventNamespaces)}
}

type recorder struct {
	to         events.EventRecorder
	mutex      sync.Mutex
	namespaces *lru.Cache // of *rate.Limiter
}

// Eventf implements events.EventRecorder.
func (r *recorder) Eventf(regarding, related runtime.Object, eventType, reason, action, note string, args ...any) {
	if !r.allows(regarding) {
		return
	}
	r.to.Eventf(regarding, related, eventType, reason, action, "%s", redact.Clean(fmt.Sprintf(note, args...)))
}

func (r *recorder) allows(regarding runtime.Object) bool {
	object, err := meta.Accessor(regarding)
	if err != nil {
		return true // client-go says what is wrong
	}
	r.mutex.Lock()
	defer r.mutex.Unlock()
	limiter, known := r.namespaces.Get(object.GetNamespace())
	if !known {
		limiter = rate.NewLimiter(eventsPerSecond, eventsAtOnce)
		r.namespaces.Add(object.GetNamespace(), limiter)
	}
	return limiter.(*rate.Limiter).Allow()
}
