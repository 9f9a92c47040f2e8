package table_test

import (
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"

	slipwayv1alpha1 "github.com/slipway-dev/slipway/api/v1alpha1"
	apiroutes "github.com/slipway-dev/slipway/internal/gateway/frontend/apigateway"
	"github.com/slipway-dev/slipway/internal/gateway/table"
)

// writeTable writes everything that a table does.
func writeTable(out *strings.Builder, in apiroutes.Input) {
	compiled, problems := apiroutes.Compile(in)
	for _, p := range problems {
		fmt.Fprintf(out, "problem %d %q %s %s: %s\n", p.Index, p.Route, p.List, p.Reason, p.Message)
	}
	for _, b := range compiled.Backends {
		fmt.Fprintf(out, "backend %d %s: %s %d protocol %d endpoints %v limits %+v", b.Index, b.ID, b.Service, b.Port, b.Protocol, b.Endpoints, b.Limits)
		if b.HealthCheck != nil {
			fmt.Fprintf(out, " check %+v", *b.HealthCheck)
		}
		if b.TLS != nil {
			fmt.Fprintf(out, " tls %q names %q %q own roots %t shows %t", b.TLS.ServerName, b.TLS.Names, b.TLS.URIs, b.TLS.Roots != nil, b.TLS.Certificate != nil)
		}
		out.WriteString("\n")
	}
	for _, route := range compiled.Routes {
		fmt.Fprintf(out, "route %d %q", route.Index, route.Name)
		if route.Unavailable != nil {
			fmt.Fprintf(out, " unavailable %s: %s\n", route.Unavailable.Reason, route.Unavailable.Message)
			continue
		}
		writeAnswer(out, route)
		writeEdits(out, route)
		writePolicy(out, route)
		out.WriteString("\n")
	}
	writeRequests(out, compiled, in.Routes)
}

func writeAnswer(out *strings.Builder, route *table.Route) {
	for _, b := range route.Backends {
		fmt.Fprintf(out, " %s*%d", b.ID, b.Weight)
	}
	if len(route.Backends) > 0 {
		out.WriteString(" picks")
		for random := range uint64(5) {
			if b, _ := route.Pick(random); b != nil {
				fmt.Fprintf(out, " %s", b.ID)
			} else {
				out.WriteString(" none")
			}
		}
	}
	if r := route.Redirect; r != nil {
		fmt.Fprintf(out, " redirect %d", r.StatusCode)
		for _, host := range []string{"a.test", "a.test:8080", "[::1]:443"} {
			for _, scheme := range []string{"http", "https"} {
				fmt.Fprintf(out, " %s", r.Location(scheme, host, 8000, "/p/q", "x=y"))
			}
		}
	}
	if d := route.Direct; d != nil {
		fmt.Fprintf(out, " direct %d %q %q", d.StatusCode, d.ContentType, d.Body)
	}
}

func writeEdits(out *strings.Builder, route *table.Route) {
	if w := route.Rewrite; w != nil {
		fmt.Fprintf(out, " rewrite host %q", w.Host)
		for _, path := range []string{"/", "/a", "/a/b/c/", "//a%2Fb/c"} {
			if parsed, err := table.ParsePath(path); err == nil {
				fmt.Fprintf(out, " %s>%s", path, w.Path(parsed))
			}
		}
	}
	if e := route.RequestHeaders; e != nil {
		fmt.Fprintf(out, " request headers %q", *e)
	}
	if e := route.ResponseHeaders; e != nil {
		fmt.Fprintf(out, " response headers %q", *e)
	}
	for _, m := range route.Mirrors {
		fmt.Fprintf(out, " mirror %s %d/%d", m.Backend.ID, m.Numerator, m.Denominator)
	}
	if c := route.CORS; c != nil {
		fmt.Fprintf(out, " cors methods %q headers %q expose %q credentials %v age %s", c.AllowMethods, c.AllowHeaders, c.ExposeHeaders, c.AllowCredentials, c.MaxAge)
		for _, origin := range []string{"https://a.example.com", "https://x.a.example.com", "HTTP://LOCALHOST:3000", "null"} {
			if allowed, ok := c.AllowOrigin(origin); ok {
				fmt.Fprintf(out, " %s>%s", origin, allowed)
			}
		}
	}
}

func writePolicy(out *strings.Builder, route *table.Route) {
	fmt.Fprintf(out, " timeouts %v %v %v %v retries %d %b", route.Timeouts.Request, route.Timeouts.Backend, route.Timeouts.Idle, route.Timeouts.IdleSet, route.Retries.Attempts, route.Retries.On)
	if route.MaxBodyBytes != 0 {
		fmt.Fprintf(out, " body %d", route.MaxBodyBytes)
	}
	if route.RateLimit != nil {
		limit := route.RateLimit
		fmt.Fprintf(out, " rate {Requests:%d Period:%v Burst:%d Per:%v}", limit.Requests, limit.Period, limit.Burst, limit.Per)
		if limit.Shared {
			fmt.Fprint(out, " shared")
		}
	}
	if c := route.Cache; c != nil {
		fmt.Fprintf(out, " cache %d bytes %v", c.MaxBytes, c.MaxAge)
	}
	if c := route.Compression; c != nil {
		fmt.Fprintf(out, " compression %v min %d types %d %q", c.Codings, c.MinBytes, len(c.Types), c.Types[0])
	}
	auth := route.Auth
	if auth == nil {
		return
	}
	fmt.Fprintf(out, " auth hides %q", auth.Hidden)
	switch {
	case auth.APIKey != nil:
		k := auth.APIKey
		fmt.Fprintf(out, " key header %q param %q client %q", k.Header, k.QueryParam, k.ClientHeader)
		for _, key := range []string{"one", "two", "three", "secret", "key", ""} {
			if client, ok := k.Client(key); ok {
				fmt.Fprintf(out, " %s>%s", key, client)
			}
		}
	case auth.Basic != nil:
		b := auth.Basic
		fmt.Fprintf(out, " basic realm %q user %q", b.Realm, b.UserHeader)
		for _, user := range slices.Sorted(maps.Keys(b.Users)) {
			fmt.Fprintf(out, " %s>%q", user, b.Users[user])
		}
	case auth.JWT != nil:
		j := auth.JWT
		fmt.Fprintf(out, " jwt %q %q %q keys %v claims %v", j.Issuer, j.Audiences, j.JWKSURL, j.Keys != nil, j.ClaimHeaders)
	}
}

// writeRequests writes which route answers, for requests made from the routes.
func writeRequests(out *strings.Builder, compiled *table.Table, routes []slipwayv1alpha1.Route) {
	const mostHosts, mostPaths = 4, 10
	var hosts, paths []string
	for i := range routes {
		hosts, paths = append(hosts, hostsOf(&routes[i])...), append(paths, pathsOf(&routes[i])...)
	}
	hosts, paths = distinct(append(hosts, "other.test"), mostHosts), distinct(paths, mostPaths)
	plain := slices.Clone(paths)
	for i, path := range plain[:min(len(plain), 4)] {
		other := plain[(i+3)%len(plain)]
		paths = append(paths, path+"/..%2F.."+other, path+";x/../"+strings.TrimPrefix(other, "/"), "/"+path+"%3Fa=x")
	}
	for _, host := range hosts {
		fmt.Fprintf(out, "%s:", host)
		for _, path := range paths {
			writeMatch(out, compiled, "GET", host, path, "a=x", http.Header{})
		}
		out.WriteString("\n")
	}
	for i := range routes {
		writeOwn(out, compiled, &routes[i])
	}
}

// writeOwn writes what answers to a request that has all that a route asks for, and to a
// preflight request for it.
func writeOwn(out *strings.Builder, compiled *table.Table, route *slipwayv1alpha1.Route) {
	method, header, query := "GET", http.Header{}, []string{}
	if len(route.Methods) > 0 {
		method = string(route.Methods[0])
	}
	value := func(in *string) string {
		if in == nil {
			return "any"
		}
		return strings.NewReplacer(".*", "", "^", "", "$", "", "+", "").Replace(*in)
	}
	for _, h := range route.Headers {
		header.Add(string(h.Name), value(h.Value))
	}
	for _, q := range route.QueryParams {
		query = append(query, q.Name+"="+value(q.Value))
	}
	host, path := hostsOf(route)[0], pathsOf(route)[0]
	fmt.Fprintf(out, "own %s %s:", method, host)
	writeMatch(out, compiled, method, host, path, strings.Join(query, "&"), header)
	header.Set("Access-Control-Request-Method", method)
	writeMatch(out, compiled, "OPTIONS", host, path, strings.Join(query, "&"), header)
	out.WriteString("\n")
}

func writeMatch(out *strings.Builder, compiled *table.Table, method, host, path, query string, header http.Header) {
	parsed, err := table.ParsePath(path)
	if err != nil {
		fmt.Fprintf(out, " %s=bad", path)
		return
	}
	r := &table.Request{Method: method, Host: host, Path: parsed.Match, RawQuery: query, Header: header}
	route := compiled.Match(r)
	switch {
	case route == nil:
		fmt.Fprintf(out, " %s=-", path)
	case !compiled.ReadAlike(r, parsed, route):
		fmt.Fprintf(out, " %s=%d!", path, route.Index)
	default:
		fmt.Fprintf(out, " %s=%d", path, route.Index)
	}
}

func hostsOf(route *slipwayv1alpha1.Route) []string {
	host := string(route.Host)
	if parent, wildcard := strings.CutPrefix(host, "*."); wildcard {
		return []string{"x." + parent, "y.x." + parent, parent}
	}
	if host == "" {
		return []string{"other.test"}
	}
	return []string{host}
}

func pathsOf(route *slipwayv1alpha1.Route) []string {
	path := route.Path
	if path == "" {
		path = "/"
	}
	if route.PathType == slipwayv1alpha1.PathRegularExpression {
		return []string{strings.NewReplacer(".*", "x", ".+", "x", "(a|b)", "a", "^", "", "$", "", "?", "").Replace(path), "/a/b"}
	}
	return []string{path, strings.TrimSuffix(path, "/") + "/x", path + "/"}
}

func distinct(list []string, most int) []string {
	var out []string
	for _, text := range list {
		if text != "" && !slices.Contains(out, text) && len(out) < most {
			out = append(out, text)
		}
	}
	return out
}
