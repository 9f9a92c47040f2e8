package alarm

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"time"

	"golang.org/x/time/rate"
	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	eventsclient "k8s.io/client-go/kubernetes/typed/events/v1"
	"k8s.io/utils/clock"
	"k8s.io/utils/lru"

	slipwayv1alpha1 "github.com/slipway-dev/slipway/api/v1alpha1"
	"github.com/slipway-dev/slipway/internal/monitor/change"
	"github.com/slipway-dev/slipway/internal/monitor/notify"
	"github.com/slipway-dev/slipway/internal/text"
	"github.com/slipway-dev/slipway/internal/web/rights"
)

const (
	component  = "slipway-monitor"
	controller = "slipway.dev/monitor"
	// reasonRaised and reasonEnded are the reasons of Events, and eventAction is what they are about.
	reasonRaised = "AlarmRaised"
	reasonEnded  = "AlarmEnded"
	eventAction  = "Monitor"
	// maxNote is how long the text of an Event may be, and maxName its name.
	maxNote = 1024
	maxName = 253

	// eventBurst Events of a rule and an object are made at once, and one each eventEvery. What is more is counted in the last one.
	eventBurst = 10
	eventEvery = time.Minute
	// eventsPerSecond and eventsAtOnce bound all Events together: others wait.
	eventsPerSecond = 20
	eventsAtOnce    = 100
	// seriesMemory is for how many rules and objects that is remembered.
	seriesMemory = 10_000
)

// eventWriter makes Events of alarms.
type eventWriter struct {
	events     eventsclient.EventsGetter
	namespaces rights.Namespaces
	instance   string
	clock      clock.Clock
	log        *slog.Logger
	all        *rate.Limiter

	mutex  sync.Mutex
	series *lru.Cache
}

// series are the Events of one rule and one object.
type series struct {
	limit *rate.Limiter
	// last is the Event that was made last, and reported when its count was last written.
	last     types.NamespacedName
	reported time.Time
	count    int32
}

func newEventWriter(options Options) *eventWriter {
	return &eventWriter{
		events: options.Events, namespaces: options.Namespaces, instance: text.Cut(options.Instance, 128), clock: options.Clock,
		log: options.Log,
		all: rate.NewLimiter(eventsPerSecond, eventsAtOnce), series: lru.New(seriesMemory),
	}
}

// deliver implements notify.Deliver. The name of the Event is made of the key of the alarm, so that there are no two.
func (w *eventWriter) deliver(ctx context.Context, body []byte) error {
	received := notify.Event{}
	if err := json.Unmarshal(body, &received); err != nil {
		return nil // it was not made by this program, and never will be an Event
	}
	former, err := w.isOfFormer(ctx, &received.Data.Object)
	if err != nil {
		return err
	}
	if former {
		w.log.Info("there is no Event about an alarm: its object is not known to be of the namespace that is there now", "rule",
			received.Data.Rule, "key", received.ID)
		return nil
	}
	s := w.seriesOf(&received)
	now := w.clock.Now()
	if !s.limit.AllowN(now, 1) {
		return w.count(ctx, s, now)
	}
	if err := w.all.Wait(ctx); err != nil {
		return err
	}
	event := w.event(&received, now)
	_, err = w.events.Events(event.Namespace).Create(ctx, event, metav1.CreateOptions{})
	switch {
	case err == nil, apierrors.IsAlreadyExists(err):
		s.last, s.reported, s.count = types.NamespacedName{Namespace: event.Namespace, Name: event.Name}, now, 1
		return nil
	case isHopeless(err):
		w.log.Info("there is no Event about an alarm", "rule", received.Data.Rule, "key", received.ID, "error", err.Error())
		return nil
	}
	return err
}

// isOfFormer reports whether an object is not known to belong to the namespace that has the name of its own now. Who has that one must not
// read of it.
func (w *eventWriter) isOfFormer(ctx context.Context, o *notify.DataObject) (bool, error) {
	if w.namespaces == nil || o.Namespace == "" {
		return false, nil
	}
	now, err := w.namespaces.Get(ctx, o.Namespace, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return true, nil
	}
	if err != nil {
		return false, err
	}
	tenure := change.Tenure{UID: now.UID, Created: now.CreationTimestamp.Time, ResourceVersion: now.ResourceVersion}
	return !tenure.Has(change.Origin{Created: o.Created, Versions: []string{o.ResourceVersion}}), nil
}

// isHopeless reports whether an Event will never be made: its namespace is gone, or going, or it is refused.
func isHopeless(err error) bool {
	return apierrors.IsNotFound(err) || apierrors.IsInvalid(err) || apierrors.HasStatusCause(err, corev1.NamespaceTerminatingCause)
}

func (w *eventWriter) seriesOf(received *notify.Event) *series {
	key := received.Data.Rule + "\x00" + received.Data.Object.UID
	w.mutex.Lock()
	defer w.mutex.Unlock()
	if known, found := w.series.Get(key); found {
		return known.(*series)
	}
	s := &series{limit: rate.NewLimiter(rate.Every(eventEvery), eventBurst)}
	w.series.Add(key, s)
	return s
}

// count counts an alarm in the Event that was made last. That is written once in a while.
func (w *eventWriter) count(ctx context.Context, s *series, now time.Time) error {
	s.count++
	if s.last.Name == "" || now.Sub(s.reported) < eventEvery {
		return nil
	}
	s.reported = now
	patch, err := json.Marshal(map[string]any{"series": eventsv1.EventSeries{Count: s.count, LastObservedTime: metav1.NewMicroTime(now)}})
	if err != nil {
		return err
	}
	_, err = w.events.Events(s.last.Namespace).Patch(ctx, s.last.Name, types.MergePatchType, patch, metav1.PatchOptions{})
	if apierrors.IsNotFound(err) {
		return nil
	}
	return err
}

func (w *eventWriter) event(received *notify.Event, now time.Time) *eventsv1.Event {
	o, kind, reason := &received.Data.Object, corev1.EventTypeWarning, reasonRaised
	note := fmt.Sprintf("%s (%s): %s", received.Data.Rule, received.Data.Severity, received.Data.Message)
	if received.Type == notify.TypeEnded {
		kind, reason = corev1.EventTypeNormal, reasonEnded
		note = fmt.Sprintf("%s (%s) has ended: %s", received.Data.Rule, received.Data.EndReason, received.Data.Message)
	}
	if received.Data.Severity == string(slipwayv1alpha1.SeverityInfo) {
		kind = corev1.EventTypeNormal
	}
	namespace := o.Namespace
	if namespace == "" {
		namespace = metav1.NamespaceDefault
	}
	suffix := "." + received.ID
	return &eventsv1.Event{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: nameOf(o.Name, maxName-len(suffix)) + suffix},
		EventTime:  metav1.NewMicroTime(now), ReportingController: controller, ReportingInstance: w.instance,
		Action: eventAction, Reason: reason, Type: kind, Note: text.Cut(note, maxNote),
		Regarding: corev1.ObjectReference{
			APIVersion: schema.GroupVersion{Group: o.Group, Version: o.Version}.String(), Kind: o.Kind,
			Namespace: o.Namespace, Name: o.Name, UID: types.UID(o.UID),
		},
	}
}

// nameOf makes of the name of an object the beginning of another one. Some built-in kinds have names that Events may not have.
func nameOf(name string, limit int) string {
	name = strings.Map(func(r rune) rune {
		if r >= 'a' && r <= 'z' || r >= '0' && r <= '9' || r == '.' {
			return r
		}
		return '-'
	}, name)
	return strings.Trim(name[:min(len(name), limit)], ".-")
}
