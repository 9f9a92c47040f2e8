package crdcheck

import (
	"regexp"
	"strings"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/utils/ptr"
)

// compareRules compares the rules of x-kubernetes-validations. What they say when they refuse is not compared.
func (w *walk) compareRules(at *path, was, is []apiextensionsv1.ValidationRule) {
	if len(was) == 0 && len(is) == 0 {
		return
	}
	before, after := ruleTexts(was), ruleTexts(is)
	gone, added := missing(before, after), missing(after, before)
	if len(gone) == 1 && len(added) == 1 && !immutable.MatchString(added[0]) {
		w.add(Risky, at.String(), RuleChanged, "the rule was %s, is %s", show(gone[0]), show(added[0]))
		return
	}
	for _, rule := range added {
		w.ruleAdded(at, rule)
	}
	for _, rule := range gone {
		code := RuleRemoved
		if immutable.MatchString(rule) {
			code = ImmutabilityRemoved
		}
		w.add(Info, at.String(), code, "the rule %s is gone", show(rule))
	}
}

// optionalSuffix is added to the text of a rule that is also evaluated when there is no old value.
const optionalSuffix = " (optionalOldSelf)"

func ruleTexts(rules []apiextensionsv1.ValidationRule) []string {
	texts := make([]string, 0, len(rules))
	for i := range rules {
		text := strings.TrimSpace(rules[i].Rule)
		if ptr.Deref(rules[i].OptionalOldSelf, false) {
			text += optionalSuffix
		}
		texts = append(texts, text)
	}
	return texts
}

var (
	immutable = regexp.MustCompile(`^\(?\s*(self\s*==\s*oldSelf|oldSelf\s*==\s*self)\s*\)?$`)
	oldSelf   = regexp.MustCompile(`\boldSelf\b`)
)

func (w *walk) ruleAdded(at *path, rule string) {
	switch {
	case immutable.MatchString(rule):
		w.add(Breaking, at.String(), ImmutabilityAdded, "the field cannot be changed any more (%s)", show(rule))
	case oldSelf.MatchString(rule):
		w.add(Breaking, at.String(), TransitionRuleAdded, "a change has to satisfy %s now", show(rule))
	default:
		w.add(Breaking, at.String(), RuleAdded, "the value has to satisfy %s now", show(rule))
	}
}
