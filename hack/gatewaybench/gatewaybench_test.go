package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/slipway-dev/slipway/internal/gateway/static"
)

func TestTheGatewaysConfigurationServesEveryRoute(t *testing.T) {
	for _, s := range []scenario{{routes: 1}, {routes: 25}, {routes: 25, policies: true}} {
		dir := t.TempDir()
		if err := slipway.write(newSettings(dir, s, 8080, 9090)); err != nil {
			t.Fatal(err)
		}
		text, err := os.ReadFile(filepath.Join(dir, "gateway.yaml"))
		if err != nil {
			t.Fatal(err)
		}
		config, err := static.Parse(text)
		if err != nil {
			t.Fatalf("%s: %v", s, err)
		}
		if len(config.Problems) > 0 || len(config.Proxy.Table.Routes) != s.routes {
			t.Errorf("%s: %d routes are served, with problems %v", s, len(config.Proxy.Table.Routes), config.Problems)
		}
		if limited := config.Proxy.Table.Routes[0].RateLimit != nil; limited != s.policies {
			t.Errorf("%s: the route has a rate limit: %t", s, limited)
		}
	}
}

func TestEveryConfigurationNamesEveryRoute(t *testing.T) {
	c := newSettings(t.TempDir(), scenario{routes: 25, policies: true}, 8080, 9090)
	for _, p := range known {
		if err := p.write(c); err != nil {
			t.Fatal(err)
		}
		text, err := os.ReadFile(filepath.Join(c.Dir, p.configs[len(p.configs)-1]))
		if err != nil {
			t.Fatal(err)
		}
		if got := strings.Count(string(text), "app2.example.test"); got == 0 {
			t.Errorf("%s: the last host is missing", p.name)
		}
		if got := strings.Count(string(text), "/api/4/"); got != 3 {
			t.Errorf("%s: the path of 3 hosts is there %d times", p.name, got)
		}
	}
}

func TestTicksOfAProgramWithAnOddName(t *testing.T) {
	got, err := ticksOf("7 (a) b (c) S 1 7 7 0 -1 4194560 1 2 3 4 50 25 0 0 20 0 1 0")
	if err != nil || got != 75 {
		t.Errorf("got %d, %v; want 75", got, err)
	}
	if _, err := ticksOf("7 (a) S 1"); err == nil {
		t.Error("a line that is too short is no error")
	}
}

func TestBusyLeavesIdleTimeOut(t *testing.T) {
	const stat = "cpu  9 9 9 9 9 9 9 9 0 0\ncpu0 100 20 30 4000 500 6 7 8 0 0\ncpu1 1 0 0 0 0 0 0 0 0 0\n"
	got, err := busyOf(stat, 0)
	if want := 1710 * time.Millisecond; err != nil || got != want {
		t.Errorf("got %v, %v; want %v", got, err, want)
	}
	if _, err := busyOf(stat, 2); err == nil {
		t.Error("a core that is not there is no error")
	}
}

func TestPssIsInBytes(t *testing.T) {
	got, err := pssOf("00400000-7fff [rollup]\nRss:  2000 kB\nPss:     1536 kB\nPss_Anon: 5 kB\n")
	if err != nil || got != 1536<<10 {
		t.Errorf("got %d, %v; want %d", got, err, 1536<<10)
	}
}

func TestAGoalIsDecidedByTheMedianOfProcessorTime(t *testing.T) {
	of := func(proxy string, micros ...int64) []result {
		var results []result
		for _, cost := range micros {
			results = append(results, result{
				Scenario: scenario{routes: 1}, Proxy: proxy, Requests: 1000, Micros: 1e6, CPU: time.Duration(cost) * time.Millisecond,
			})
		}
		return results
	}
	tests := map[string]struct {
		ours []int64
		want string
	}{
		"met, whatever one round says": {ours: []int64{90, 20, 19}, want: "0.65x by CPU (1.00x by requests/s) | yes |"},
		"missed":                       {ours: []int64{26, 19, 40}, want: "0.50x by CPU (1.00x by requests/s) | NO |"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			got := goalTable(grouped(append(of("nginx", 13, 13, 13), of("slipway", test.ours...)...)))
			if !strings.Contains(got, test.want) {
				t.Errorf("got\n%s\nwant a line with %q", got, test.want)
			}
		})
	}
}
