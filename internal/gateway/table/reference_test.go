package table_test

import (
	"math/rand/v2"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"

	"sigs.k8s.io/yaml"

	slipwayv1alpha1 "github.com/slipway-dev/slipway/api/v1alpha1"
	apiroutes "github.com/slipway-dev/slipway/internal/gateway/frontend/apigateway"
	"github.com/slipway-dev/slipway/internal/gateway/table"
)

// reference finds the route of a request as the documentation describes it: it looks at
// every route, keeps those that match and takes the most specific one. It returns the
// route's index in the spec, or -1.
func reference(in []slipwayv1alpha1.Route, r *table.Request) int {
	var matching []int
	for i := range in {
		if referenceMatches(&in[i], r) {
			matching = append(matching, i)
		}
	}
	if len(matching) == 0 {
		return -1
	}
	slices.SortStableFunc(matching, func(a, b int) int {
		return -slices.Compare(referenceRank(&in[a]), referenceRank(&in[b]))
	})
	return matching[0]
}

// referenceRank tells how specific a route is. The first difference decides.
func referenceRank(route *slipwayv1alpha1.Route) []int {
	host := map[bool]int{true: 1000 + len(route.Host)}[route.Host != ""]
	if host > 0 && !strings.HasPrefix(string(route.Host), "*") {
		host += 1000
	}
	path := map[slipwayv1alpha1.PathType]int{
		slipwayv1alpha1.PathExact: 3, slipwayv1alpha1.PathRegularExpression: 2, slipwayv1alpha1.PathPrefix: 1,
	}[route.PathType]
	length := len(route.Path)
	if path == 1 {
		length = len(strings.TrimSuffix(route.Path, "/"))
	}
	return []int{host, path, length, min(len(route.Methods), 1), len(route.Headers), len(route.QueryParams)}
}

func referenceMatches(route *slipwayv1alpha1.Route, r *table.Request) bool {
	host := strings.ToLower(strings.TrimSuffix(strings.Split(r.Host, ":")[0], "."))
	if parent, wildcard := strings.CutPrefix(string(route.Host), "*"); wildcard && !strings.HasSuffix(host, parent) {
		return false
	} else if !wildcard && route.Host != "" && host != string(route.Host) {
		return false
	}
	switch route.PathType {
	case slipwayv1alpha1.PathExact:
		if r.Path != route.Path {
			return false
		}
	case slipwayv1alpha1.PathPrefix:
		prefix := strings.TrimSuffix(route.Path, "/")
		if r.Path != prefix && !strings.HasPrefix(r.Path, prefix+"/") {
			return false
		}
	default:
		if !referenceExpression(route.Path, r.Path) {
			return false
		}
	}
	if len(route.Methods) > 0 && !slices.Contains(route.Methods, slipwayv1alpha1.HTTPMethod(r.Method)) {
		return false
	}
	for _, header := range route.Headers {
		if !slices.ContainsFunc(r.Header.Values(string(header.Name)), func(value string) bool {
			return referenceValue(header.Type, header.Value, value)
		}) {
			return false
		}
	}
	query, _ := url.ParseQuery(r.RawQuery)
	for _, param := range route.QueryParams {
		if !query.Has(param.Name) || !referenceValue(param.Type, param.Value, query.Get(param.Name)) {
			return false
		}
	}
	return true
}

func referenceValue(matchType slipwayv1alpha1.MatchType, want *string, got string) bool {
	if want == nil {
		return true
	}
	if matchType == slipwayv1alpha1.MatchRegularExpression {
		return referenceExpression(*want, got)
	}
	return *want == got
}

// referenceExpressions caches compiled expressions. There are only a few.
var referenceExpressions sync.Map

func referenceExpression(expression, text string) bool {
	compiled, known := referenceExpressions.Load(expression)
	if !known {
		alone, err := regexp.Compile("(?s)" + expression)
		if err == nil {
			alone.Longest()
		}
		compiled, _ = referenceExpressions.LoadOrStore(expression, alone)
	}
	alone := compiled.(*regexp.Regexp)
	if alone == nil {
		return false
	}
	// With leftmost-longest matching, the match at the start is the whole text if the whole
	// text matches.
	at := alone.FindStringIndex(text)
	return at != nil && at[0] == 0 && at[1] == len(text)
}

// draw makes choices from bytes, so that a fuzzer can control them. Without bytes left, it
// always takes the first choice.
type draw []byte

func (d *draw) below(n int) int {
	if len(*d) == 0 {
		return 0
	}
	choice := int((*d)[0]) % n
	*d = (*d)[1:]
	return choice
}

func pick[T any](d *draw, choices ...T) T { return choices[d.below(len(choices))] }

// routes generates routes from few words, so that routes overlap.
func (d *draw) routes() []slipwayv1alpha1.Route {
	out := make([]slipwayv1alpha1.Route, d.below(24))
	for i := range out {
		out[i] = d.route()
	}
	return answering(out)
}

func (d *draw) route() slipwayv1alpha1.Route {
	route := slipwayv1alpha1.Route{
		Host:     pick[slipwayv1alpha1.HostName](d, "", "", "a.test", "b.a.test", "*.test", "*.a.test", "*.b.a.test"),
		PathType: pick(d, slipwayv1alpha1.PathPrefix, slipwayv1alpha1.PathExact, slipwayv1alpha1.PathRegularExpression),
	}
	route.Path = d.path()
	if route.PathType == slipwayv1alpha1.PathRegularExpression {
		route.Path = pick(d, "/a.*", "/.+/b", "/(a|b)/?", ".*", "(?i)/A", "/a|/b", "/[", "^/a/b$")
	}
	for range pick(d, 0, 0, 0, 1, 2) {
		route.Methods = append(route.Methods, pick[slipwayv1alpha1.HTTPMethod](d, "GET", "POST"))
	}
	for range pick(d, 0, 0, 0, 1, 2) {
		value, matchType := d.value()
		route.Headers = append(route.Headers, slipwayv1alpha1.HeaderMatch{
			Name: pick[slipwayv1alpha1.HeaderName](d, "X-A", "X-B"), Value: value, Type: matchType,
		})
	}
	for range pick(d, 0, 0, 0, 1, 2) {
		value, matchType := d.value()
		route.QueryParams = append(route.QueryParams, slipwayv1alpha1.QueryParamMatch{
			Name: pick(d, "a", "b"), Value: value, Type: matchType,
		})
	}
	return route
}

func (d *draw) path() string {
	path := ""
	for range d.below(4) {
		path += "/" + pick(d, "a", "b", "ab")
	}
	if path == "" || d.below(3) == 0 {
		path += "/"
	}
	return path
}

func (d *draw) request() *table.Request {
	r := &table.Request{
		Method:   pick(d, "GET", "POST", "PUT"),
		Host:     pick(d, "a.test", "b.a.test", "c.b.a.test:8080", "B.A.TEST", "test", "a.test.", "other"),
		Path:     d.path(),
		RawQuery: pick(d, "", "a", "a=x", "b=xy&a=x", "a=%78&b", "a=x;b=x", "a=%zz&a=x", "b=x&b="),
	}
	header := http.Header{}
	for range d.below(3) {
		header.Add(pick(d, "X-A", "X-B"), pick(d, "x", "xy", "", "y"))
	}
	r.Header = header
	return r
}

// value generates the value and match type of a header or parameter.
func (d *draw) value() (*string, slipwayv1alpha1.MatchType) {
	matchType := pick(d, slipwayv1alpha1.MatchExact, slipwayv1alpha1.MatchRegularExpression)
	value := pick(d, "x", "x.*", "")
	if matchType == slipwayv1alpha1.MatchExact && d.below(3) == 0 {
		return nil, matchType
	}
	return &value, matchType
}

// check compares a table with the reference, for one set of routes and some requests. It
// returns how many requests a route answers.
func check(t *testing.T, d *draw) (answered int) {
	t.Helper()
	in := d.routes()
	compiled, problems := apiroutes.Compile(apiroutes.Input{Routes: in})
	for _, problem := range problems {
		if problem.Reason != slipwayv1alpha1.ReasonInvalidRegex {
			t.Fatalf("problem %+v", problem)
		}
	}
	for range 8 {
		r := d.request()
		parsed := *r
		if host, err := table.ParseHost(r.Host); err != nil {
			t.Fatal(err)
		} else {
			parsed.Host = host.Name
		}
		got := -1
		if route := compiled.Match(&parsed); route != nil {
			got = route.Index
			answered++
		}
		if want := reference(in, r); got != want {
			written, _ := yaml.Marshal(in)
			t.Fatalf("route %d answers, want %d\nrequest %+v\nroutes:\n%s", got, want, r, written)
		}
	}
	return answered
}

func TestATableAgreesWithTheReference(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	const tables, enough = 4000, 8000
	answered := 0
	for range tables {
		choices := make(draw, 600)
		for i := range choices {
			choices[i] = byte(random.Uint32())
		}
		answered += check(t, &choices)
	}
	if answered < enough {
		t.Errorf("only %d requests were answered by a route: this shows too little", answered)
	}
}

func FuzzMatchAgreesWithTheReference(f *testing.F) {
	f.Add([]byte("0123456789abcdef"))
	f.Add([]byte{})
	f.Fuzz(func(t *testing.T, choices []byte) {
		d := draw(choices)
		check(t, &d)
	})
}

// FuzzCompile compiles words that no schema has checked.
func FuzzCompile(f *testing.F) {
	f.Add("a.test", "/a", "Prefix", "X-A", "x", "/b", "1s", "sha256:00")
	f.Add("*.test", "/[", "RegularExpression", "host", "(", "b\n", "-1h", "$2y$10$")
	f.Add("", "", "", "", "", "", "", "")
	f.Fuzz(func(t *testing.T, host, path, pathType, header, value, rewrite, duration, secret string) {
		header0 := slipwayv1alpha1.HeaderName(header)
		edited := slipwayv1alpha1.EditableHeaderName(header)
		field := []slipwayv1alpha1.HeaderField{{Name: edited, Value: slipwayv1alpha1.HeaderValue(value)}}
		bad := slipwayv1alpha1.Route{
			Name: value, Host: slipwayv1alpha1.HostName(host), Path: path, PathType: slipwayv1alpha1.PathType(pathType),
			Headers:        []slipwayv1alpha1.HeaderMatch{{Name: header0, Value: &value, Type: slipwayv1alpha1.MatchRegularExpression}},
			QueryParams:    []slipwayv1alpha1.QueryParamMatch{{Name: header, Value: &value}},
			BackendService: &slipwayv1alpha1.BackendService{Name: slipwayv1alpha1.ServiceName(host), Port: int32(len(path))},
			Rewrite:        &slipwayv1alpha1.Rewrite{Path: slipwayv1alpha1.URLPath(rewrite), Host: slipwayv1alpha1.PreciseHostName(host)},
			RequestHeaders: &slipwayv1alpha1.HeaderEdit{Set: field, Add: field, Remove: []slipwayv1alpha1.EditableHeaderName{edited}},
			CORS:           &slipwayv1alpha1.CORS{AllowOrigins: []slipwayv1alpha1.Origin{slipwayv1alpha1.Origin(host)}},
			Timeouts:       &slipwayv1alpha1.Timeouts{Request: slipwayv1alpha1.Duration(duration)},
			Auth:           &slipwayv1alpha1.Auth{APIKey: &slipwayv1alpha1.APIKeyAuth{SecretRef: slipwayv1alpha1.LocalReference{Name: "s"}}},
		}
		basic := bad
		basic.Auth = &slipwayv1alpha1.Auth{Basic: &slipwayv1alpha1.BasicAuth{SecretRef: slipwayv1alpha1.LocalReference{Name: "s"}}}
		basic.Headers, basic.Rewrite = nil, &slipwayv1alpha1.Rewrite{PathPrefix: slipwayv1alpha1.URLPath(rewrite)}
		good := slipwayv1alpha1.Route{Name: "good", Host: "good.test", DirectResponse: &slipwayv1alpha1.DirectResponse{StatusCode: 200}}

		compiled, _ := apiroutes.Compile(apiroutes.Input{
			Routes:  []slipwayv1alpha1.Route{bad, basic, good},
			Secrets: map[string]map[string][]byte{"s": {"k": []byte(secret)}},
			HealthChecks: []slipwayv1alpha1.BackendHealthCheck{{
				Name: slipwayv1alpha1.ServiceName(host), Port: int32(len(path)), Path: slipwayv1alpha1.URLPath(rewrite),
				Host: slipwayv1alpha1.PreciseHostName(value), PeriodSeconds: new(int32(len(duration))),
			}},
		})
		for _, backend := range compiled.Backends {
			if check := backend.HealthCheck; check != nil && (strings.ContainsAny(check.Path+check.Host, " \r\n\x00") || check.Path[0] != '/' || check.Period <= 0) {
				t.Errorf("the backend is checked as %+v", check)
			}
		}
		requestPath, err := table.ParsePath(path)
		if err != nil {
			requestPath, _ = table.ParsePath("/")
		}
		for _, name := range []string{host, "a." + host, "good.test"} {
			route := compiled.Match(&table.Request{Method: "GET", Host: name, Path: requestPath.Match, RawQuery: value, Header: http.Header{header: {value}}})
			if route == nil || route.Unavailable != nil || route.Direct != nil {
				continue
			}
			if forwarded := route.Rewrite.Path(requestPath); strings.ContainsAny(forwarded, " \r\n") || !strings.HasPrefix(forwarded, "/") {
				t.Errorf("the backend gets the path %q", forwarded)
			}
			headers := http.Header{}
			route.RequestHeaders.Apply(headers)
			for name, values := range headers {
				if strings.ContainsAny(name+strings.Join(values, ""), "\r\n\x00") {
					t.Errorf("the backend gets the headers %q", headers)
				}
			}
		}
		last := compiled.Match(&table.Request{Method: "GET", Host: "good.test", Path: "/", Header: http.Header{}})
		if host != "good.test" && (last == nil || last.Index != 2) {
			t.Errorf("in place of the good route %+v answers", last)
		}
	})
}
