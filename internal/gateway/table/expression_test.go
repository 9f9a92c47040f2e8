package table_test

import (
	"net/http"
	"net/url"
	"strings"
	"testing"

	slipwayv1alpha1 "github.com/slipway-dev/slipway/api/v1alpha1"
	apiroutes "github.com/slipway-dev/slipway/internal/gateway/frontend/apigateway"
	"github.com/slipway-dev/slipway/internal/gateway/table"
	"github.com/slipway-dev/slipway/internal/testing/property"
)

func TestAnExpressionIsForTheWholeValueLineEndsIncluded(t *testing.T) {
	tests := map[string]struct {
		route   string
		request string
		want    bool
	}{
		"path with a line feed":             {"{path: '/private/.*', pathType: RegularExpression}", "GET http://a/private/%0ax", true},
		"path with a carriage return":       {"{path: '/private/.*', pathType: RegularExpression}", "GET http://a/private/%0d%0ax", true},
		"path that ends in a line feed":     {"{path: '/private', pathType: RegularExpression}", "GET http://a/private%0a", false},
		"path with another line behind":     {"{path: '^/private$', pathType: RegularExpression}", "GET http://a/private%0ax", false},
		"path with another line before":     {"{path: '^/private$', pathType: RegularExpression}", "GET http://a/x%0a/private", false},
		"anchors by line in the expression": {"{path: '(?m)/x.*^/private$', pathType: RegularExpression}", "GET http://a/x%0a/private", false},
		"lines that the expression excepts": {"{path: '(?-s)/private/.*', pathType: RegularExpression}", "GET http://a/private/%0ax", true},
		"lines that a group excepts":        {"{path: '/private/(?-s:.*)', pathType: RegularExpression}", "GET http://a/private/%0ax", true},
		"lines that a set excepts":          {`{path: '/private/[^\n]*', pathType: RegularExpression}`, "GET http://a/private/%0ax", false},
		"parameter with a line feed":        {"{queryParams: [{name: v, value: 'a.*', type: RegularExpression}]}", "GET http://a/?v=a%0ab", true},
		"parameter that ends in one":        {"{queryParams: [{name: v, value: 'a', type: RegularExpression}]}", "GET http://a/?v=a%0a", false},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			compiled := compile(t, apiroutes.Input{Routes: answering(routes(t, "["+tc.route+"]"))})
			if got := compiled.Match(request(t, tc.request)) != nil; got != tc.want {
				t.Errorf("matches: %v, want %v", got, tc.want)
			}
		})
	}
}

// expression generates an expression without characters that could be a line end.
func (d *draw) expression(depth int) string {
	text := ""
	for range 1 + d.below(3) {
		switch piece := d.below(8); {
		case piece == 0 && depth > 0:
			text += "(?:" + d.expression(depth-1) + "|" + d.expression(depth-1) + ")"
		case piece == 1 && depth > 0:
			text += pick(d, "(?-s:", "(?m:", "(?ims:", "(?U:", "(") + d.expression(depth-1) + ")"
		case piece == 2:
			text += pick(d, "^", "$", `\A`, `\z`, "(?m)", "(?-s)", "(?i)")
		default:
			text += pick(d, "a", "b", ".", ".", "[^b]", "[^a/]", "/") + pick(d, "", "", "*", "+", "?", "{1,2}", "*?")
		}
	}
	return text
}

func (d *draw) lines() string {
	text := ""
	for range d.below(7) {
		text += pick(d, "a", "b", "/", "\n", "\n")
	}
	return text
}

// checkExpression checks that a line end is an ordinary character wherever a value is
// compared.
func checkExpression(t *testing.T, d *draw) (matches int) {
	t.Helper()
	expression := d.expression(2)
	header := answering([]slipwayv1alpha1.Route{
		{Path: "/" + expression, PathType: slipwayv1alpha1.PathRegularExpression},
		{Host: "header.test", Headers: []slipwayv1alpha1.HeaderMatch{{Name: "X-A", Value: &expression, Type: slipwayv1alpha1.MatchRegularExpression}}},
		{Host: "query.test", QueryParams: []slipwayv1alpha1.QueryParamMatch{{Name: "a", Value: &expression, Type: slipwayv1alpha1.MatchRegularExpression}}},
	})
	compiled, problems := apiroutes.Compile(apiroutes.Input{Routes: header})
	if len(problems) > 0 {
		return 0
	}
	value := d.lines()
	other := strings.ReplaceAll(value, "\n", "\x01")
	for _, ask := range []func(value string) bool{
		func(value string) bool {
			return compiled.Match(&table.Request{Host: "path.test", Path: "/" + value, Header: http.Header{}}) != nil
		},
		func(value string) bool {
			return compiled.Match(&table.Request{Host: "header.test", Path: "x", Header: http.Header{"X-A": {value}}}) != nil
		},
		func(value string) bool {
			return compiled.Match(&table.Request{Host: "query.test", Path: "x", RawQuery: "a=" + url.QueryEscape(value), Header: http.Header{}}) != nil
		},
	} {
		got, want := ask(value), ask(other)
		if got != want {
			t.Fatalf("%q matches %q: %v, and with another character in place of the line ends: %v", expression, value, got, want)
		}
		if got && value != other {
			matches++
		}
	}
	return matches
}

func TestALineEndIsACharacterLikeAnyOther(t *testing.T) {
	count, source := property.Inputs(t, 2_000, 400)
	random := source(0)
	matches := 0
	for range count {
		choices := make(draw, 60)
		for i := range choices {
			choices[i] = byte(random.Uint32())
		}
		matches += checkExpression(t, &choices)
	}
	t.Logf("%d values with a line end matched", matches)
	if matches < count/10 {
		t.Errorf("only %d values with a line end matched: this shows too little", matches)
	}
}

func FuzzExpressionTakesALineEndForACharacter(f *testing.F) {
	f.Add([]byte("0123456789abcdef"))
	f.Fuzz(func(t *testing.T, choices []byte) {
		d := draw(choices)
		checkExpression(t, &d)
	})
}
