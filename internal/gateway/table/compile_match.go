package table

import (
	"cmp"
	"net/textproto"
	"regexp"
	"slices"
	"strings"

	"github.com/slipway-dev/slipway/internal/gateway/fieldname"
	"github.com/slipway-dev/slipway/internal/gateway/model"
)

// hostPattern is the syntax of the host of a rule.
var hostPattern = regexp.MustCompile(`^(\*\.)?[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$`)

// matcher is the path of a rule.
type matcher struct {
	text       string // in the form of Path.Match
	length     int    // for precedence
	expression *regexp.Regexp
	literal    string
	size       int // of the expression
}

// segments returns the segments of a prefix.
func (m *matcher) segments() []string {
	if m.text == "/" {
		return nil
	}
	return strings.Split(strings.Trim(m.text, "/"), "/")
}

// compileMatch compiles the fields that select the rule's requests.
func (c *compiler) compileMatch(e *compiled, rule *Rule) *model.Fault {
	for _, index := range rule.Listeners {
		if index < 0 || index >= len(c.listeners) {
			return model.Invalid("listeners: there is no listener %d", index)
		}
	}
	e.host = rule.Host
	if e.host != "" && !hostPattern.MatchString(e.host) {
		return model.Invalid("host: %q is neither a lower case DNS name nor one after '*.'", rule.Host)
	}
	if f := c.compilePath(e, rule); f != nil {
		return f
	}
	e.match.cors = rule.CORS != nil
	e.match.methods = slices.Clone(rule.Methods)
	for _, header := range rule.Headers {
		name := textproto.CanonicalMIMEHeaderKey(header.Name)
		if !fieldname.IsToken(name) || name == "Host" {
			return model.Invalid("headers: %q cannot be matched; what is in the Host header is matched by host", header.Name)
		}
		p, f := c.newPredicate(rule.Owner, "headers", name, header)
		if f != nil {
			return f
		}
		e.match.headers = append(e.match.headers, p)
	}
	for _, param := range rule.Query {
		p, f := c.newPredicate(rule.Owner, "queryParams", param.Name, param)
		if f != nil {
			return f
		}
		e.match.query = append(e.match.query, p)
	}
	return nil
}

func (c *compiler) compilePath(e *compiled, rule *Rule) *model.Fault {
	text := cmp.Or(rule.Path, "/")
	e.pathType = cmp.Or(rule.PathType, PathPrefix)
	switch e.pathType {
	case PathRegularExpression:
		expression, f := c.texts.expression(rule.Owner, "path", text)
		if f != nil {
			return f
		}
		e.path = matcher{length: len(text), expression: expression.whole, literal: expression.literal, size: expression.program}
		return nil
	case PathExact, PathPrefix:
		path, err := c.texts.path(text)
		if err != nil {
			return model.Invalid("path: %q cannot be the path of a request: %v", text, err)
		}
		e.path = matcher{text: path.Match, length: len(path.Match)}
		if e.pathType == PathPrefix {
			e.path.length = len(strings.TrimSuffix(path.Match, "/"))
		}
		return nil
	default:
		return model.Invalid("pathType: %q is not one of Prefix, Exact and RegularExpression", rule.PathType)
	}
}

func (c *compiler) newPredicate(owner, field, name string, match ValueMatch) (predicate, *model.Fault) {
	p := predicate{name: name}
	switch cmp.Or(match.Type, MatchExact) {
	case MatchExact:
		p.present = match.Value == nil
		if match.Value != nil {
			p.value = *match.Value
		}
		return p, nil
	case MatchRegularExpression:
		if match.Value == nil {
			return p, model.Invalid("%s: %s has type RegularExpression and no value", field, name)
		}
		expression, f := c.texts.expression(owner, field+": "+name, *match.Value)
		if f == nil {
			p.expression, p.size = expression.whole, expression.program
		}
		return p, f
	default:
		return p, model.Invalid("%s: type %q of %s is not one of Exact and RegularExpression", field, match.Type, name)
	}
}
