package transfer

import (
	"context"
	"strings"
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// saying has one event, with a message.
type saying struct {
	client.Reader
	message string
}

func (s saying) List(_ context.Context, into client.ObjectList, _ ...client.ListOption) error {
	into.(*corev1.EventList).Items = []corev1.Event{{Message: s.message}}
	return nil
}

// A webhook may quote what it refuses. What is a secret is seen from the lines around it, so long as there are lines.
func TestASecretThatARefusalQuotesIsHidden(t *testing.T) {
	for name, quoted := range map[string]string{
		"a variable":    "- name: DB_PASSWORD\n  value: correct-horse-battery",
		"a block":       "password: |\n  correct-horse-battery\nother: x",
		"at the cut":    strings.Repeat("x", MaxMessage-100) + " password=correct-horse-battery",
		"an assignment": "password=correct-horse-battery",
	} {
		message := "Error creating: admission webhook \"x\" denied the request:\n" + quoted
		job := &batchv1.Job{ObjectMeta: metav1.ObjectMeta{Name: "shop", UID: "uid", CreationTimestamp: metav1.Now()}}
		trouble, _ := NewJobs(saying{message: message}, nil).refused(t.Context(), job, time.Now())
		if trouble == nil || strings.Contains(trouble.Message, "horse") {
			t.Errorf("%s: %+v", name, trouble)
		}
	}
}
