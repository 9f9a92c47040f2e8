package transfer_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	slipwayv1alpha1 "github.com/slipway-dev/slipway/api/v1alpha1"
	"github.com/slipway-dev/slipway/internal/backup/mover"
	"github.com/slipway-dev/slipway/internal/backup/transfer"
)

// logs is the log of one container.
type logs struct {
	text string
	err  error
}

func (l logs) Tail(context.Context, string, string, string) ([]byte, error) {
	return []byte(l.text), l.err
}

var start = time.Date(2026, 5, 1, 2, 0, 0, 0, time.UTC)

func TestProgressIsTheLastLineThatTellsIt(t *testing.T) {
	before := &slipwayv1alpha1.TransferProgress{Percent: 10, Bytes: 100, TotalBytes: 1000}
	done := metav1.NewTime(start.Add(4 * time.Minute))
	tests := map[string]struct {
		logs logs
		want *slipwayv1alpha1.TransferProgress
	}{
		"no log": {logs{err: errors.New("no")}, before},
		"empty":  {logs{}, before},
		"others": {logs{text: "{\"msg\":\"starting\"}\nnoise\n"}, before},
		"cut off at its beginning": {
			logs{text: "s\":{\"bytes\":1}}\n{\"msg\":\"progress\",\"progress\":{\"bytes\":50,\"totalBytes\":200}}\n"},
			&slipwayv1alpha1.TransferProgress{Percent: 25, Bytes: 50, TotalBytes: 200},
		},
		"the last one, with the rest of the time when the total is known": {
			logs{text: "{\"msg\":\"progress\",\"progress\":{\"bytes\":1,\"totalBytes\":200}}\n" +
				"{\"msg\":\"progress\",\"progress\":{\"bytes\":100,\"totalBytes\":200,\"totalKnown\":true}}\n{\"msg\":\"done\"}\n"},
			&slipwayv1alpha1.TransferProgress{Percent: 50, Bytes: 100, TotalBytes: 200, EstimatedCompletionTime: &done},
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			seen := mover.Observation{State: mover.Working, Step: mover.StepSnapshot, Pod: "pod", StepSince: start}
			got := transfer.Progress(t.Context(), tc.logs, "team", seen, before, start.Add(2*time.Minute))
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
}

func TestConditionsSayWhatFollows(t *testing.T) {
	type short struct{ Type, Status, Reason string }
	tests := map[slipwayv1alpha1.BackupPhase][]short{
		slipwayv1alpha1.BackupPending:   {{"Ready", "False", "Why"}, {"Progressing", "True", "Why"}},
		slipwayv1alpha1.BackupRunning:   {{"Ready", "False", "Why"}, {"Progressing", "True", "Why"}},
		slipwayv1alpha1.BackupCompleted: {{"Ready", "True", "Why"}, {"Progressing", "False", "Why"}},
		slipwayv1alpha1.BackupFailed:    {{"Ready", "False", "Why"}, {"Progressing", "False", "Why"}, {"Stalled", "True", "Why"}},
	}
	for phase, want := range tests {
		t.Run(string(phase), func(t *testing.T) {
			var got []short
			for _, c := range transfer.Conditions(mover.Next{Phase: phase, Reason: "Why", Message: "because"}, "it has ended") {
				got = append(got, short{c.Type, string(c.Status), c.Reason})
				if c.Message == "" {
					t.Errorf("%s has no message", c.Type)
				}
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
}

// nothing is a reader of a cluster in which nothing is.
type nothing struct{ client.Reader }

func (nothing) Get(_ context.Context, key client.ObjectKey, _ client.Object, _ ...client.GetOption) error {
	return apierrors.NewNotFound(schema.GroupResource{Resource: "secrets"}, key.Name)
}

// Each reconcile has to name the same Secret: otherwise each one writes another status.
func TestOfSeveralMissingSecretsTheFirstIsNamed(t *testing.T) {
	list := []transfer.Reference{{Name: "b", Field: "spec.b"}, {Name: "a", Field: "spec.a"}}
	err := transfer.NewReferences(nothing{}, nothing{}).Check(t.Context(), "team", list)
	if err == nil || !strings.Contains(err.Error(), `"b" (spec.b)`) {
		t.Errorf("Secrets = %v, want one about the Secret b", err)
	}
}

// everything is a reader of a cluster in which there is what is asked for.
type everything struct{ client.Reader }

func (everything) Get(context.Context, client.ObjectKey, client.Object, ...client.GetOption) error {
	return nil
}

// A Secret that was just made is not in the cache yet. What is not taken back is decided by what the API server says.
func TestWhatIsDecidedForGoodIsAskedLive(t *testing.T) {
	list := []transfer.Reference{{Name: "a", Field: "spec.a"}}
	for name, tc := range map[string]struct {
		cached, live client.Reader
		found        bool
	}{
		"the cache is late":                   {nothing{}, everything{}, true},
		"it is gone, and the cache has it":    {everything{}, nothing{}, false},
		"there is none, and all say the same": {nothing{}, nothing{}, false},
	} {
		t.Run(name, func(t *testing.T) {
			err := transfer.NewReferences(tc.cached, tc.live).CheckLive(t.Context(), "team", list)
			if (err == nil) != tc.found {
				t.Errorf("CheckLive = %v", err)
			}
		})
	}
}

func TestATimeHasWholeSeconds(t *testing.T) {
	if got := transfer.At(start.Add(999 * time.Millisecond)); !got.Time.Equal(start) {
		t.Errorf("got %s", got)
	}
}
