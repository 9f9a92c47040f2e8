package server

import (
	"k8s.io/apimachinery/pkg/runtime/schema"

	slipwayv1alpha1 "github.com/slipway-dev/slipway/api/v1alpha1"
	"github.com/slipway-dev/slipway/internal/monitor/api"
	"github.com/slipway-dev/slipway/internal/monitor/store"
)

// maxAlarms is how many alarms one answer has.
const maxAlarms = 1000

var rulesKind = schema.GroupResource{Group: slipwayv1alpha1.GroupName, Resource: "monitorrules"}

// rules answers with the rules, for who may list them, and with what fires for objects that the user may list.
func (s *server) rules(r *request) (any, *api.View, error) {
	answer := &api.Rules{View: s.viewOf(r.kinds), Alarms: []api.Alarm{}}
	if s.options.Rules == nil {
		return answer, &answer.View, nil
	}
	alarms, err := s.options.Rules.Alarms(r.Context())
	if err != nil {
		return nil, nil, err
	}
	for i := range alarms {
		one := &alarms[i]
		if len(answer.Alarms) >= maxAlarms {
			break
		}
		if seen, err := s.seesAlarm(r, one); err != nil {
			return nil, nil, err
		} else if !seen {
			continue
		}
		answer.Alarms = append(answer.Alarms, api.Alarm{
			Rule: one.Rule, Severity: one.Severity, Message: one.Message, Kind: one.Kind.String(), Namespace: one.Namespace, Name: one.Name,
			Since: one.Since,
		})
	}
	if r.rights.Everywhere(rulesKind) {
		answer.Rules, err = s.options.Rules.Rules(r.Context())
	}
	return answer, &answer.View, err
}

// seesAlarm reports whether the user may see the object that an alarm is about. Of an object that has no state any more nobody knows
// whether it was in the namespace as it is now.
func (s *server) seesAlarm(r *request, one *Alarm) (bool, error) {
	share := r.rights.share(one.Kind, one.Namespace)
	if share.Of == nil {
		return share.All, nil
	}
	state, err := s.options.Store.State(r.Context(), one.Kind, one.UID)
	if store.Is(err, store.NotFound) || store.Is(err, store.Corrupt) {
		return false, nil
	}
	return err == nil && r.sees(one.Kind, &state), err
}
