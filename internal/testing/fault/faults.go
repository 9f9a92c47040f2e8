package fault

import (
	"fmt"
	"net/http"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// All are the faults that every write of every scenario is tried with.
func All() []Fault {
	faults := []Fault{{Name: "F1 crash", Crash: true}, {Name: "F2 lost answer", LoseAnswer: true}}
	for _, status := range rejections() {
		for times := 1; times <= 2; times++ {
			faults = append(faults, Fault{Name: fmt.Sprintf("F3 %d x%d", status.Code, times), Reject: status, Times: times})
		}
	}
	return faults
}

func rejections() []*metav1.Status {
	return []*metav1.Status{
		{Code: http.StatusConflict, Reason: metav1.StatusReasonConflict, Message: "the object has been modified"},
		{
			Code: http.StatusForbidden, Reason: metav1.StatusReasonForbidden,
			Message: "exceeded quota: team, requested: count=1, used: count=1, limited: count=1",
		},
		{Code: http.StatusUnprocessableEntity, Reason: metav1.StatusReasonInvalid, Message: "an admission webhook does not like it today"},
		{
			Code: http.StatusTooManyRequests, Reason: metav1.StatusReasonTooManyRequests, Message: "slow down",
			Details: &metav1.StatusDetails{RetryAfterSeconds: 1},
		},
		{Code: http.StatusInternalServerError, Reason: metav1.StatusReasonInternalError, Message: "the leader of etcd has changed"},
		{Code: http.StatusServiceUnavailable, Reason: metav1.StatusReasonServiceUnavailable, Message: "shutting down"},
	}
}
