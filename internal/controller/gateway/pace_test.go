package gateway

import (
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/types"
	clocktesting "k8s.io/utils/clock/testing"
	"k8s.io/utils/lru"

	"github.com/slipway-dev/slipway/internal/kit"
)

func TestAGatewayRestsTheLongerTheMoreRoutesItHas(t *testing.T) {
	edge, other := types.NamespacedName{Namespace: "n", Name: "edge"}, types.NamespacedName{Namespace: "n", Name: "other"}
	for _, tc := range []struct {
		name   string
		routes int
		want   time.Duration
	}{
		{"none", 0, 0},
		{"a few", 10, time.Millisecond},
		{"thousands", 5000, 500 * time.Millisecond},
		{"more than one Gateway should have", 1_000_000, time.Second},
	} {
		t.Run(tc.name, func(t *testing.T) {
			clock := clocktesting.NewFakePassiveClock(time.Unix(1, 0))
			p := &pace{clock: clock, rests: lru.New(kit.Memory)}
			if left := p.left(edge); left > 0 {
				t.Fatalf("before its first reconcile it rests for %v", left)
			}
			p.rest(edge, tc.routes)
			if left := p.left(edge); left != tc.want {
				t.Errorf("it rests for %v, want %v", left, tc.want)
			}
			if left := p.left(other); left > 0 {
				t.Errorf("another Gateway rests for %v", left)
			}
			clock.SetTime(clock.Now().Add(tc.want))
			if left := p.left(edge); left > 0 {
				t.Errorf("after %v it still rests for %v", tc.want, left)
			}
		})
	}
}
