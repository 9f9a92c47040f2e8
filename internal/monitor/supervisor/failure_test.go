package supervisor

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

func TestWhatFollowsFromAnError(t *testing.T) {
	const watching, listing = false, true
	resource := schema.GroupResource{Group: "example.com", Resource: "widgets"}
	tooLarge := apierrors.NewTimeoutError("Too large resource version", 1)
	tooLarge.ErrStatus.Details.Causes = []metav1.StatusCause{{Type: metav1.CauseTypeResourceVersionTooLarge}}
	for name, test := range map[string]struct {
		err     error
		listing bool
		fresh   bool // it has never been live
		state   State
		relist  bool
		pause   pause
		none    bool
	}{
		"a watch that ends":                  {nil, watching, false, "", false, usual, true},
		"another schema":                     {fmt.Errorf("read: %w", errInterrupted), watching, false, "", false, usual, true},
		"history that is forgotten":          {apierrors.NewResourceExpired("too old"), watching, false, Listing, true, usual, true},
		"history that is gone":               {&apierrors.StatusError{ErrStatus: metav1.Status{Code: 410, Reason: metav1.StatusReasonGone, Message: "too old"}}, watching, false, Listing, true, usual, true},
		"a list that took too long":          {apierrors.NewResourceExpired("continue"), listing, false, Listing, false, usual, false},
		"a version that is not reached":      {tooLarge, watching, false, Failing, true, usual, false},
		"a version that makes no sense":      {apierrors.NewBadRequest("invalid resourceVersion"), watching, false, Failing, true, usual, false},
		"a list that makes no sense":         {apierrors.NewBadRequest("no"), listing, false, Failing, false, usual, false},
		"refused":                            {apierrors.NewForbidden(resource, "", nil), watching, false, Refused, false, patient, false},
		"unknown who asks":                   {apierrors.NewUnauthorized("who"), watching, false, Refused, false, patient, false},
		"it cannot be listed":                {apierrors.NewMethodNotSupported(resource, "list"), listing, true, Refused, false, patient, false},
		"not served yet":                     {apierrors.NewNotFound(resource, ""), listing, true, Pending, false, soon, false},
		"not served any more":                {apierrors.NewNotFound(resource, ""), watching, false, Failing, false, soon, false},
		"busy before":                        {apierrors.NewTooManyRequests("storage is (re)initializing", 1), listing, true, Pending, false, soon, false},
		"overloaded":                         {refusedAtTheDoor("Too many requests, please try again later."), listing, true, Pending, false, usual, false},
		"overloaded, in words of others":     {refusedAtTheDoor("storage is (re)initializing"), watching, false, Behind, false, usual, false},
		"busy, in other words":               {apierrors.NewTooManyRequests("not ready", 1), watching, false, Behind, false, soon, false},
		"a name like an overload":            {apierrors.NewNotFound(resource, "storage is (re)initializing: too many requests"), listing, true, Pending, false, soon, false},
		"a conversion that says it is busy":  {apierrors.NewInternalError(errors.New("storage is (re)initializing: too many requests")), watching, false, Failing, false, usual, false},
		"busy":                               {apierrors.NewTooManyRequests("storage is (re)initializing", 1), watching, false, Behind, false, soon, false},
		"an error within":                    {apierrors.NewInternalError(errors.New("conversion")), watching, false, Failing, false, usual, false},
		"the connection is cut":              {io.ErrUnexpectedEOF, watching, false, Behind, false, usual, false},
		"the connection of a list":           {io.ErrUnexpectedEOF, listing, false, Failing, false, usual, false},
		"no connection":                      {errors.New("connection refused"), watching, true, Failing, false, usual, false},
		"silence":                            {errSilent, watching, false, Failing, false, usual, false},
		"garbage":                            {garbage("a"), watching, false, Failing, false, usual, false},
		"disorder":                           {errDisorder, watching, false, Failing, true, usual, false},
		"a full disk that looks like an API": {sinkError{apierrors.NewResourceExpired("a")}, watching, false, Failing, false, usual, false},
	} {
		t.Run(name, func(t *testing.T) {
			got := judge(test.err, test.listing, !test.fresh)
			if got.state != test.state || (got.relist != "") != test.relist || got.pause != test.pause || got.none != test.none {
				t.Errorf("%+v", got)
			}
			if test.state != "" && got.reason == "" {
				t.Error("no reason")
			}
		})
	}
}

// refusedAtTheDoor is what a client makes of 429 without a Status, as filters of the API server, and proxies, send it.
func refusedAtTheDoor(said string) error {
	return apierrors.NewGenericServerResponse(http.StatusTooManyRequests, http.MethodGet, schema.GroupResource{}, "", said, 1, true)
}

func TestWaitsGrowAndAreBounded(t *testing.T) {
	for name, test := range map[string]struct {
		pause       pause
		first, last time.Duration
	}{
		"usual":   {usual, firstUsual, maxUsual},
		"soon":    {soon, firstSoon, maxUsual},
		"patient": {patient, firstPatient, maxPatient},
		"again":   {again, firstUsual, maxUsual},
	} {
		t.Run(name, func(t *testing.T) {
			p := pace{}
			first := p.next(finding{pause: test.pause})
			if first < test.first/2 || first > test.first {
				t.Errorf("the first wait is %v", first)
			}
			for range 60 {
				if wait := p.next(finding{pause: test.pause}); wait > test.last {
					t.Errorf("a wait of %v", wait)
				}
			}
			if wait := p.next(finding{pause: test.pause}); wait < test.last/2 {
				t.Errorf("the last wait is %v", wait)
			}
			p.calm()
			if wait := p.next(finding{pause: test.pause}); wait > test.first {
				t.Errorf("after a success the wait is %v", wait)
			}
		})
	}
	if wait := (&pace{}).next(finding{after: 2 * time.Second}); wait != 2*time.Second {
		t.Errorf("the API server asks for 2 s, the wait is %v", wait)
	}
	if soonest := grown(firstSoon, maxSoon, 1.2, 0); soonest > 100*time.Millisecond {
		t.Errorf("a kind that is about to be served is asked for after %v", soonest)
	}
}
