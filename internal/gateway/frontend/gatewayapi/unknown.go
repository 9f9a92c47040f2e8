package gatewayapi

import (
	"fmt"
	"strconv"
	"strings"

	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"
)

// unknownf is why something with a field that this program does not know is refused: what it
// means without the field nobody knows.
func unknownf(field string) *fault {
	return faultf(gatewayv1.RouteReasonUnsupportedValue, "%s: this version does not know the field", field)
}

// refuseUnknown refuses what has unknown fields. It is not known which requests a match with one
// is for.
func (r *Route) refuseUnknown(fields []string) {
	for _, field := range fields {
		f := unknownf(field)
		if i, _, in := within(field, "parentRefs"); in {
			if r.unknownRefs == nil {
				r.unknownRefs = map[int]*fault{}
			}
			r.unknownRefs[i] = f
			continue
		}
		i, rest, in := within(field, "rules")
		if in && i < len(r.rules) {
			r.rules[i].refuse(f)
			if k, _, in := within(rest, "matches"); in && k < len(r.rules[i].matches) {
				r.rules[i].matches[k].unknown = true
			}
			continue
		}
		for i := range r.rules {
			r.rules[i].refuse(f)
		}
	}
}

// unknown is the first unknown field of a listener. One of a ListenerSet that is in none of its listeners is in all of them:
// the pods read nothing of a Gateway that has such a field, so it is not among these.
func (b *builder) unknown(of owner, listener int) *fault {
	for _, field := range b.in.Unknown[of.uid] {
		if i, _, in := within(field, "listeners"); !in || i == listener {
			return unknownf(field)
		}
	}
	return nil
}

// within tells whether a field is in an element of a list, in which one, and where in it.
func within(field, list string) (index int, rest string, in bool) {
	text, found := strings.CutPrefix(field, fmt.Sprintf("%s[", list))
	if !found {
		return 0, "", false
	}
	number, rest, _ := strings.Cut(text, "]")
	index, err := strconv.Atoi(number)
	return index, strings.TrimPrefix(rest, "."), err == nil && index >= 0
}
