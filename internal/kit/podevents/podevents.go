// Package podevents reads what the kubelet says of pods in events and nowhere else, such as
// what a probe got for an answer. Events are many and the API server does not cache them,
// so they are read live, only those of a pod whose status does not explain itself, less and
// less often, and remembered.
package podevents

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"
	"k8s.io/utils/lru"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/slipway-dev/slipway/internal/health"
	"github.com/slipway-dev/slipway/internal/kit/outcome"
	"github.com/slipway-dev/slipway/internal/text"
)

// When events of a pod are read.
const (
	// startTime is how long a pod is left alone that is starting: most are ready by then, and
	// a rollout of those costs nothing.
	startTime = 2 * time.Second
	// soon is the shortest pause between two reads. The kubelet writes its events after it has
	// acted, and what it gets from a pod that starts changes: a pause is half as long as the
	// trouble lasts.
	soon = time.Second
	// calm is the pause at the least after what keeps a pod that served from serving is known.
	calm = 30 * time.Second
	// enough is how long after it began a trouble is asked about: what was said then stays.
	enough = 15 * time.Minute
	// maxListened bounds how many pods of one object are asked about in a reconcile.
	maxListened = 3
	// maxEvents bounds how many warnings of a pod are read, and maxMessage what is kept of the
	// words of one. The kubelet writes a few; whoever may write events in the namespace can
	// write as many and as long ones as he likes.
	maxEvents  = 64
	maxMessage = 4 << 10
	// memory is how many pods are remembered.
	memory = 4096
)

// Reader reads and remembers the events of pods.
type Reader struct {
	// live reads past the cache, which has no events.
	live client.Reader
	// clock tells the time.
	clock clock.PassiveClock
	// seen is what was read of each pod, by its UID. Losing it costs reads, nothing else.
	seen *lru.Cache
}

// seenEvents is what is known of one trouble of one pod.
type seenEvents struct {
	// since is when the trouble began. Another run of a container is another trouble.
	since time.Time
	// served reports whether it is that of a pod that served, and not of one that starts.
	served bool
	// final reports whether it was read for a verdict.
	final bool
	// next is when to read; zero: never.
	next time.Time
	// events are those of the last read.
	events []corev1.Event
}

// NewReader returns a reader that has read nothing yet. live reads from the API server.
func NewReader(live client.Reader, clock clock.PassiveClock) *Reader {
	return &Reader{live: live, clock: clock, seen: lru.New(memory)}
}

// Listen returns the warnings, by the UID of the pod, of those pods whose status does not say
// what keeps them from serving, and how long it is until more may be known, 0: never. Those
// that served come before those that start, a few in all: one that says why is enough, and
// the others mostly hang in the same. For a verdict they are read once more, whatever was
// seen before.
func (r *Reader) Listen(
	ctx context.Context, pods []*corev1.Pod, verdict bool,
) (warnings map[types.UID][]corev1.Event, again outcome.Recheck) {
	var served, starting []*corev1.Pod
	for _, pod := range pods {
		if _, unexplained := health.Unexplained(pod); !unexplained {
			continue
		}
		if health.FailsProbe(pod) {
			served = append(served, pod)
		} else {
			starting = append(starting, pod)
		}
	}
	warnings = map[types.UID][]corev1.Event{}
	all := slices.Concat(served, starting)
	for _, pod := range all[:min(len(all), maxListened)] {
		events, in := r.warningsOf(ctx, pod, verdict)
		warnings[pod.UID] = events
		again.After(in)
	}
	return warnings, again
}

// warningsOf returns the warnings of a pod, as last read, and how long it is until they are to be
// read again, 0: not. A pod that is well, or whose status says what is wrong, has none. An
// error of a read is none for the caller: less is known then.
func (r *Reader) warningsOf(ctx context.Context, pod *corev1.Pod, verdict bool) (events []corev1.Event, again time.Duration) {
	since, unexplained := health.Unexplained(pod)
	if !unexplained {
		return nil, 0
	}
	now := r.clock.Now()
	known := begin(since, health.FailsProbe(pod))
	if before, ok := r.seen.Get(pod.UID); ok && before.(seenEvents).since.Equal(since) {
		known = before.(seenEvents)
	}
	if known.due(now) || verdict && !known.final {
		read, err := r.read(ctx, pod)
		if err != nil {
			log.FromContext(ctx).V(1).Info("The events of a pod could not be read", "pod", pod.Name, "error", err.Error())
			read = known.events
		}
		known = known.after(now, read)
		known.final = known.final || verdict
		r.seen.Add(pod.UID, known)
	}
	return known.events, known.in(now)
}

func (r *Reader) read(ctx context.Context, pod *corev1.Pod) ([]corev1.Event, error) {
	list := &corev1.EventList{}
	ofPod := fields.Set{"involvedObject.uid": string(pod.UID), "type": corev1.EventTypeWarning}.AsSelector()
	if err := r.live.List(ctx, list, client.InNamespace(pod.Namespace), client.MatchingFieldsSelector{Selector: ofPod},
		client.Limit(maxEvents)); err != nil {
		return nil, fmt.Errorf("list the events of pod %q: %w", pod.Name, err)
	}
	kept := make([]corev1.Event, 0, len(list.Items))
	for i := range list.Items {
		kept = append(kept, reduce(&list.Items[i]))
	}
	return kept, nil
}

// reduce returns what of an event may tell something.
func reduce(event *corev1.Event) corev1.Event {
	return corev1.Event{
		Reason: event.Reason, Message: strings.Clone(text.Cut(event.Message, maxMessage)),
		FirstTimestamp: event.FirstTimestamp, LastTimestamp: event.LastTimestamp, EventTime: event.EventTime, Series: event.Series,
		InvolvedObject: corev1.ObjectReference{FieldPath: event.InvolvedObject.FieldPath},
	}
}

// begin is a trouble of which nothing was seen. One of a pod that served is asked about at
// once.
func begin(since time.Time, served bool) seenEvents {
	if served {
		return seenEvents{since: since, served: true, next: since}
	}
	return seenEvents{since: since, next: since.Add(startTime)}
}

// due reports whether it is time to read.
func (h seenEvents) due(now time.Time) bool { return !h.next.IsZero() && !now.Before(h.next) }

// after is what is known after a read: the older the trouble, the longer until the next.
func (h seenEvents) after(now time.Time, events []corev1.Event) seenEvents {
	age := now.Sub(h.since)
	h.events, h.next = events, time.Time{}
	if age >= enough {
		return h
	}
	pause := max(age/2, soon)
	if h.served && len(events) > 0 {
		pause = max(age, calm)
	}
	h.next = now.Add(pause)
	return h
}

// in is how long it is until the next read; 0: there is none.
func (h seenEvents) in(now time.Time) time.Duration {
	if h.next.IsZero() {
		return 0
	}
	return max(h.next.Sub(now), time.Millisecond)
}
