package list

import (
	slipwayv1alpha1 "github.com/slipway-dev/slipway/api/v1alpha1"
	"github.com/slipway-dev/slipway/internal/gateway/feature"
	"github.com/slipway-dev/slipway/internal/gateway/model"
)

// Entry is a setting without its types. The fields that are not explained here are those of feature.Setting.
type Entry struct {
	Name        string
	Asked       func(in *slipwayv1alpha1.GatewayPolicySettings) bool
	Covers      feature.Relation
	Inherits    feature.Inheritance
	Off         func(in *slipwayv1alpha1.GatewayPolicySettings) bool
	Connections bool
	IdleThere   func(in *slipwayv1alpha1.GatewayPolicySettings) string
	NotGRPC     bool
	Backends    bool

	// Read sets it to what a policy asks for. It does nothing if the policy has not got it. With a fault too it is set, as far as
	// it is known.
	Read func(into *Settings, in *slipwayv1alpha1.GatewayPolicySettings, from feature.Source) *model.Fault
	// Compile sets it to what is served.
	Compile func(into *Compiled, asked *Settings, of feature.Rule) *model.Fault
	// IsSet reports whether it is asked for.
	IsSet func(of *Settings) bool
	// Take sets it to what another has. Clear takes it away.
	Take  func(into, from *Settings)
	Clear func(in *Settings)
	// Text is equal for two that ask for the same. Empty: it is not asked for.
	Text func(of *Settings, rule feature.Rule) string

	protects, matters bool
}

// Protects reports whether it keeps something out: who passes a rule without it may not pass one with it.
func (e *Entry) Protects() bool { return e.protects }

// Matters reports whether it says anything about who passes what. Without a Covers it does.
func (e *Entry) Matters() bool { return e.matters }

// at makes the entry of a setting from its places.
func at[S comparable, C any](setting *feature.Setting[S, C], asked func(*Settings) *S, served func(*Compiled) *C) Entry {
	var unset S
	e := Entry{
		Name: setting.Name, Asked: setting.Asked, Covers: setting.Covers, Inherits: setting.Inherits, Off: setting.Off,
		Connections: setting.Connections, IdleThere: setting.IdleThere, NotGRPC: setting.NotGRPC, Backends: setting.Backends,
		IsSet: func(of *Settings) bool { return *asked(of) != unset },
		Take:  func(into, from *Settings) { *asked(into) = *asked(from) },
		Clear: func(in *Settings) { *asked(in) = unset },
	}
	if e.Covers == nil {
		e.Covers = feature.Same
	}
	e.protects = !e.Covers("", "something")
	e.matters = e.protects || !e.Covers("something", "")
	if e.Off == nil {
		e.Off = func(*slipwayv1alpha1.GatewayPolicySettings) bool { return false }
	}
	e.Read = func(into *Settings, in *slipwayv1alpha1.GatewayPolicySettings, from feature.Source) (f *model.Fault) {
		if setting.Asked(in) {
			*asked(into), f = setting.Read(in, from)
		}
		return f
	}
	e.Compile = func(into *Compiled, from *Settings, of feature.Rule) (f *model.Fault) {
		if one := *asked(from); one != unset {
			*served(into), f = setting.Compile(one, of)
		}
		return f
	}
	e.Text = func(of *Settings, rule feature.Rule) string {
		switch one := *asked(of); {
		case one == unset:
			return ""
		case setting.Text != nil:
			return setting.Text(one, rule)
		default:
			return feature.Describe(one)
		}
	}
	return e
}
