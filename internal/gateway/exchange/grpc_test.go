package exchange

import (
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	clocktesting "k8s.io/utils/clock/testing"
)

// A backend resets the stream of a call whose time is over, sometimes before the client looks at its own clock.
func TestACallWhoseTimeIsOverIsToldSo(t *testing.T) {
	for field, want := range map[string]bool{
		"50m": true, "1S": true, "1000000u": true, "1001m": false, "2S": false, "99999999H": false,
		"": false, "m": false, "5": false, "-1S": false, "+1S": false, "1x": false, "0000000001S": false,
	} {
		start := time.Now()
		e := &Exchange{Request: Request{r: httptest.NewRequest(http.MethodPost, "/", nil), Start: start}, Process: &Process{Clock: clocktesting.NewFakeClock(start.Add(time.Second))}}
		e.r.Header.Set("Grpc-Timeout", field)
		if got := e.pastTimeout(); got != want {
			t.Errorf("%q: got %v", field, got)
		}
	}
}

func TestMessagesOfGRPCAreEncoded(t *testing.T) {
	for text, want := range map[string]string{"no_route": "no_route", "100 %\n": "100 %25%0A", "ü": "%C3%BC", "": ""} {
		if got := grpcMessage(text); got != want {
			t.Errorf("%q: got %q", text, got)
		}
	}
}
