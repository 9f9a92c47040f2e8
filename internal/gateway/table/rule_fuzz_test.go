package table_test

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/slipway-dev/slipway/internal/gateway/feature/auth"
	"github.com/slipway-dev/slipway/internal/gateway/feature/cors"
	"github.com/slipway-dev/slipway/internal/gateway/model"
	"github.com/slipway-dev/slipway/internal/gateway/table"
)

// FuzzCompileRules compiles words that no front end has checked. Whatever they are, what
// goes out stays in its line, and the good rule of another listener answers.
func FuzzCompileRules(f *testing.F) {
	f.Add("a.test", "/a", "Prefix", "X-A", "x", "/b", int32(80), uint32(1))
	f.Add("*.test", "/[", "RegularExpression", "host", "(", "b\n", int32(-1), uint32(0))
	f.Add("*.test", "/", "Prefix", "X-A", "x", "/back", int32(80), uint32(4))
	f.Add("", "", "", "", "*", "//x", int32(0), uint32(3))
	f.Fuzz(func(t *testing.T, host, path, pathType, header, value, target string, port int32, number uint32) {
		edit := &model.HeaderEdit{Set: []model.HeaderField{{Name: header, Value: value}}, Add: []model.HeaderField{{Name: header, Value: value}}, Remove: []string{header}}
		ref := model.BackendRef{Namespace: host, Service: "web", Port: 80, Weight: number, Field: "backendRefs"}
		ref.Rewrite, ref.RequestHeaders, ref.ResponseHeaders = &model.Rewrite{PathPrefix: target, Host: host}, edit, edit
		bad := table.Rule{Name: value, Host: host, PathType: table.PathType(pathType), Path: path, Methods: []string{header}, Listeners: []int{0, int(number % 4)}}
		forward, redirect := bad, bad
		forward.Backends, forward.StrictShares = []model.BackendRef{ref}, true
		forward.Mirrors = []model.MirrorRef{{Namespace: host, Service: "web", Port: 80, Numerator: number, Denominator: number}}
		forward.CORS = &cors.Rule{AllowOrigins: []string{value}, AllowMethods: []string{value}, AllowHeaders: []string{header}, ExposeHeaders: []string{value}, AllowCredentials: true, Wildcards: true}
		if number&4 != 0 { // requests for the end of its log-ins are matched meanwhile
			forward.Auth = &auth.Policy{OIDC: &auth.OIDC{
				Scope: value, Issuer: "https://id.test", ClientID: value, Secrets: []auth.Secret{"0123456789abcdef"}, RedirectPath: target, LogoutPath: path, Length: time.Hour,
			}}
			redirect.Headers, redirect.Query = []table.ValueMatch{{Name: header, Value: &value}}, []table.ValueMatch{{Name: header, Value: &value}}
		}
		redirect.Methods, redirect.Redirect = nil, &model.Redirect{StatusCode: 302, Scheme: pathType, Host: host, Port: port, ListenerPort: true, PathPrefix: target}
		good := table.Rule{Name: "good", Index: 1, Listeners: []int{1}, Direct: answer}
		compiled, _ := table.Compile(table.Input{
			Listeners: []table.Listener{{Port: port, Hostname: host}, {Port: 8080, Hostname: "good.test"}, {Port: port, Secure: true}},
			Rules:     []table.Rule{forward, redirect, good},
			Services:  map[model.ServiceName]model.Service{{Namespace: host, Name: "web"}: {Ports: map[int32]model.ServicePort{80: {Endpoints: []string{"10.0.0.1:80"}}}}},
			Settings:  map[model.BackendName]model.Settings{{ServiceName: model.ServiceName{Namespace: host, Name: "web"}, Port: 80}: {HealthCheck: &model.HealthCheck{Path: target, Host: host}}},
		})
		requestPath, err := table.ParsePath(path)
		if err != nil {
			requestPath, _ = table.ParsePath("/")
		}
		for _, name := range []string{host, "a." + strings.TrimPrefix(host, "*."), ""} {
			for _, method := range []string{header, "GET"} {
				r := &table.Request{Method: method, Port: port, Host: name, Path: requestPath.Match, RawQuery: value, Header: http.Header{header: {value}}}
				if route := compiled.Match(r); route != nil && route.Unavailable == nil {
					compiled.ReadAlike(r, requestPath, route)
					checkSent(t, route, requestPath, value)
				}
			}
		}
		if port == 8080 && host == "good.test" {
			return
		}
		last := compiled.Match(&table.Request{Method: "GET", Port: 8080, Host: "good.test", Path: "/x", Header: http.Header{}})
		if last == nil || last.Index != 1 {
			if number%4 != 1 { // otherwise the listener has the other rules too
				t.Errorf("in place of the good rule %+v answers", last)
			}
		}
	})
}

// checkSent checks what a route makes of a request.
func checkSent(t *testing.T, route *table.Route, path table.Path, asked string) {
	t.Helper()
	var lines []string
	for i := range route.Backends {
		backend := &route.Backends[i]
		if backend.Rewrite != nil {
			forwarded := backend.Rewrite.Path(path)
			if !strings.HasPrefix(forwarded, "/") || strings.Contains(forwarded, " ") {
				t.Errorf("the backend gets the path %q", forwarded)
			}
			lines = append(lines, forwarded, backend.Rewrite.Host)
		}
		for _, edit := range []*model.HeaderEdit{backend.RequestHeaders, backend.ResponseHeaders} {
			headers := http.Header{}
			edit.Apply(headers)
			for name, values := range headers {
				lines = append(append(lines, name), values...)
			}
		}
	}
	if route.Redirect != nil {
		location := route.Redirect.Location("http", "a.test:8080", 80, path.Forward, "")
		if !strings.HasPrefix(location, "http://") && !strings.HasPrefix(location, "https://") {
			t.Errorf("the client is sent to %q", location)
		}
		lines = append(lines, location)
	}
	if route.CORS != nil {
		lines = append(lines, route.CORS.AllowMethods, route.CORS.AllowHeaders, route.CORS.ExposeHeaders, route.CORS.Methods(asked), route.CORS.Headers(asked))
	}
	for _, line := range lines {
		if strings.ContainsAny(line, "\r\n\x00") {
			t.Errorf("%q is sent", line)
		}
	}
}
