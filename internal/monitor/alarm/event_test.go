package alarm

import (
	"context"
	"errors"
	"log/slog"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/kubernetes/fake"
	"k8s.io/utils/clock"

	"github.com/slipway-dev/slipway/internal/monitor/notify"
	"github.com/slipway-dev/slipway/internal/monitor/rule"
)

// namespaceMade is a namespace that was made at a time, and had the version 100 then, or an error.
type namespaceMade struct {
	at  time.Time
	err error
}

func (n namespaceMade) Get(context.Context, string, metav1.GetOptions, ...string) (*metav1.PartialObjectMetadata, error) {
	return &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{CreationTimestamp: metav1.NewTime(n.at), ResourceVersion: "100"}}, n.err
}

// TestThereIsNoEventAboutAnObjectOfAFormerNamespace: a message may wait for long, and its namespace be somebody else's then.
func TestThereIsNoEventAboutAnObjectOfAFormerNamespace(t *testing.T) {
	made := time.Date(2026, 11, 28, 10, 0, 0, 0, time.UTC)
	away := errors.New("away")
	gone := apierrors.NewNotFound(schema.GroupResource{Resource: "namespaces"}, "team")
	for name, tc := range map[string]struct {
		namespace namespaceMade
		created   int64
		version   string
		events    int
		err       error
	}{
		"made in the namespace":                     {namespaceMade{at: made.Add(-time.Hour)}, made.Unix(), "", 1, nil},
		"in the second of the namespace, after it":  {namespaceMade{at: made}, made.Unix(), "101", 1, nil},
		"in the second of the namespace, before it": {namespaceMade{at: made}, made.Unix(), "99", 0, nil},
		"in the second of the namespace, unknown":   {namespaceMade{at: made}, made.Unix(), "", 0, nil},
		"of a namespace before":                     {namespaceMade{at: made.Add(time.Second)}, made.Unix(), "101", 0, nil},
		"of a namespace that is gone":               {namespaceMade{err: gone}, made.Unix(), "101", 0, nil},
		"while nobody says which is there":          {namespaceMade{err: away}, made.Unix(), "101", 0, away},
		"of a version that did not write it down":   {namespaceMade{at: made}, 0, "101", 0, nil},
		"of a namespace that is gone, and unknown":  {namespaceMade{err: gone}, 0, "", 0, nil},
	} {
		t.Run(name, func(t *testing.T) {
			kube := fake.NewClientset()
			w := newEventWriter(Options{Events: kube.EventsV1(), Namespaces: tc.namespace, Clock: clock.RealClock{}, Log: slog.New(slog.DiscardHandler)})
			messages := notify.Messages(&rule.Alarm{
				Key: "k", Raised: "k", Rule: "r", Message: "m", Event: true, At: made, ResourceVersion: tc.version,
				Object: rule.Object{Kind: "Widget", Namespace: "team", Name: "a", UID: "u", Created: tc.created},
			}, nil, "")
			if len(messages) != 1 {
				t.Fatalf("%d messages", len(messages))
			}
			if err := w.deliver(t.Context(), messages[0].Body); !errors.Is(err, tc.err) {
				t.Errorf("error %v, want %v", err, tc.err)
			}
			list, err := kube.EventsV1().Events("team").List(t.Context(), metav1.ListOptions{})
			if err != nil || len(list.Items) != tc.events {
				t.Errorf("%d Events (%v), want %d", len(list.Items), err, tc.events)
			}
		})
	}
}
