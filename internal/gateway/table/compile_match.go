package table

import (
	"net/textproto"
	"regexp"
	"strings"

	slipwayv1alpha1 "github.com/slipway-dev/slipway/api/v1alpha1"
)

// hostPattern is the syntax of spec.routes.host.
var hostPattern = regexp.MustCompile(`^(\*\.)?[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$`)

// matcher is the path of a route.
type matcher struct {
	text       string // in the form of Path.Match
	length     int    // for precedence
	expression *regexp.Regexp
	literal    string
}

// segments returns the segments of a prefix.
func (m *matcher) segments() []string {
	if m.text == "/" {
		return nil
	}
	return strings.Split(strings.Trim(m.text, "/"), "/")
}

// compileMatch compiles the fields that select the route's requests.
func (e *compiled) compileMatch(spec *slipwayv1alpha1.Route) *fault {
	e.host = string(spec.Host)
	if e.host != "" && !hostPattern.MatchString(e.host) {
		return invalid("host: %q is neither a lower case DNS name nor one after '*.'", spec.Host)
	}
	if f := e.compilePath(spec); f != nil {
		return f
	}
	e.match.cors = spec.CORS != nil
	for _, method := range spec.Methods {
		e.match.methods = append(e.match.methods, string(method))
	}
	for _, header := range spec.Headers {
		name := textproto.CanonicalMIMEHeaderKey(string(header.Name))
		if !isToken(name) || name == "Host" {
			return invalid("headers: %q cannot be matched; what is in the Host header is matched by host", header.Name)
		}
		p, f := newPredicate("headers", name, header.Type, header.Value)
		if f != nil {
			return f
		}
		e.match.headers = append(e.match.headers, p)
	}
	for _, param := range spec.QueryParams {
		p, f := newPredicate("queryParams", param.Name, param.Type, param.Value)
		if f != nil {
			return f
		}
		e.match.query = append(e.match.query, p)
	}
	return nil
}

func (e *compiled) compilePath(spec *slipwayv1alpha1.Route) *fault {
	text := orDefault(spec.Path, "/")
	e.pathType = orDefault(spec.PathType, slipwayv1alpha1.PathPrefix)
	switch e.pathType {
	case slipwayv1alpha1.PathRegularExpression:
		expression, literal, f := compileExpression("path", text)
		if f != nil {
			return f
		}
		e.path = matcher{length: len(text), expression: expression, literal: literal}
		return nil
	case slipwayv1alpha1.PathExact, slipwayv1alpha1.PathPrefix:
		path, err := parseSpecPath(text)
		if err != nil {
			return invalid("path: %q cannot be the path of a request: %v", text, err)
		}
		e.path = matcher{text: path.Match, length: len(path.Match)}
		if e.pathType == slipwayv1alpha1.PathPrefix {
			e.path.length = len(strings.TrimSuffix(path.Match, "/"))
		}
		return nil
	default:
		return invalid("pathType: %q is not one of Prefix, Exact and RegularExpression", spec.PathType)
	}
}

func newPredicate(field, name string, matchType slipwayv1alpha1.MatchType, value *string) (predicate, *fault) {
	p := predicate{name: name}
	switch orDefault(matchType, slipwayv1alpha1.MatchExact) {
	case slipwayv1alpha1.MatchExact:
		p.present = value == nil
		if value != nil {
			p.value = *value
		}
		return p, nil
	case slipwayv1alpha1.MatchRegularExpression:
		if value == nil {
			return p, invalid("%s: %s has type RegularExpression and no value", field, name)
		}
		var f *fault
		p.expression, _, f = compileExpression(field+": "+name, *value)
		return p, f
	default:
		return p, invalid("%s: type %q of %s is not one of Exact and RegularExpression", field, matchType, name)
	}
}

// isToken reports whether text can be the name of a header field.
func isToken(text string) bool {
	for i := range len(text) {
		c := text[i]
		letter := 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || '0' <= c && c <= '9'
		if !letter && !strings.ContainsRune("!#$%&'*+-.^_`|~", rune(c)) {
			return false
		}
	}
	return text != ""
}
