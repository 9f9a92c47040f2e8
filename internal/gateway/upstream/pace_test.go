package upstream

import (
	"context"
	"fmt"
	"io"
	"net"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"k8s.io/utils/clock"
)

// Somebody with very many endpoints does not take the time of the others.
func TestTheChecksOfAnOwnerHaveOnePace(t *testing.T) {
	const seconds = 10
	synctest.Test(t, func(t *testing.T) {
		var mu sync.Mutex
		dials := map[string]int{} // by the first part of the address
		registry := NewRegistry(Options{Dial: func(_ context.Context, address string) (net.Conn, error) {
			mu.Lock()
			defer mu.Unlock()
			first, _, _ := strings.Cut(address, ".")
			dials[first]++
			return nil, io.ErrUnexpectedEOF
		}})
		for key, owner := range map[string]string{"1": "many", "2": "many", "3": "few", "4": "", "5": ""} {
			count := 1500
			if owner == "few" {
				count = 10
			}
			addresses := make([]string, count)
			for i := range addresses {
				addresses[i] = fmt.Sprintf("%s.0.%d.%d:80", key, i/250, i%250)
			}
			s := registry.Service(key, nil)
			s.SetCheck(Check{Path: "/", Period: time.Second, Timeout: time.Second, Healthy: 1, Unhealthy: 1, Owner: owner})
			s.Set(addresses)
		}
		ctx, stop := context.WithTimeout(t.Context(), seconds*time.Second)
		defer stop()
		registry.Run(ctx, clock.RealClock{})
		if many := dials["1"] + dials["2"]; many < seconds*checksPerSecond*9/10 || many > seconds*checksPerSecond+checksPerSecond/10 {
			t.Errorf("%d checks of the owner of 3,000 endpoints in %d s", many, seconds)
		}
		if few := dials["3"]; few < 10*(seconds-2) {
			t.Errorf("%d checks of the owner of 10 endpoints in %d s", few, seconds)
		}
		if others := dials["4"] + dials["5"]; others < 3000*(seconds-2) {
			t.Errorf("%d checks of 3,000 endpoints of nobody in %d s", others, seconds)
		}
	})
}
