package table_test

import (
	"fmt"
	"math/rand/v2"
	"net/http"
	"testing"

	slipwayv1alpha1 "github.com/slipway-dev/slipway/api/v1alpha1"
	apiroutes "github.com/slipway-dev/slipway/internal/gateway/frontend/apigateway"
	"github.com/slipway-dev/slipway/internal/gateway/table"
)

// sizes are numbers of routes. An APIGateway has at most 1,000; benchmarks of other
// gateways often use 5,000.
var sizes = []int{1, 100, 1000, 5000}

// layouts are two ways to have many routes.
var layouts = map[string]func(i int) (host, path string){
	"hosts": func(i int) (string, string) { return fmt.Sprintf("app-%d.example.com", i), "/api" },
	"paths": func(i int) (string, string) { return "api.example.com", fmt.Sprintf("/service-%d", i) },
}

func benchmarkInput(layout func(int) (string, string), n int) apiroutes.Input {
	in := apiroutes.Input{Services: services()}
	for i := range n {
		host, path := layout(i)
		in.Routes = append(in.Routes, slipwayv1alpha1.Route{
			Host: slipwayv1alpha1.HostName(host), Path: path,
			BackendService: &slipwayv1alpha1.BackendService{Name: "users", Port: 8080},
		})
	}
	return in
}

// BenchmarkMatch finds the route of a random request each time. So it includes the cost of
// a route that is not in the processor's cache.
func BenchmarkMatch(b *testing.B) {
	for name, layout := range layouts {
		for _, n := range sizes {
			b.Run(fmt.Sprintf("%s/%d", name, n), func(b *testing.B) {
				compiled := compile(b, benchmarkInput(layout, n))
				requests := make([]table.Request, 8192)
				random := rand.New(rand.NewPCG(1, 2))
				for i := range requests {
					host, path := layout(random.IntN(n))
					requests[i] = table.Request{Method: "GET", Host: host, Path: path + "/x", Header: http.Header{}}
				}
				b.ReportAllocs()
				for i := 0; b.Loop(); i++ {
					r := &requests[i%len(requests)]
					path, err := table.ParsePath(r.Path)
					if err != nil {
						b.Fatal(err)
					}
					if compiled.Match(&table.Request{Method: r.Method, Host: r.Host, Path: path.Match, Header: r.Header}) == nil {
						b.Fatal("no route")
					}
				}
			})
		}
	}
}

func BenchmarkCompile(b *testing.B) {
	for _, n := range sizes[2:] {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			in := benchmarkInput(layouts["hosts"], n)
			b.ReportAllocs()
			for b.Loop() {
				apiroutes.Compile(in)
			}
		})
	}
}
