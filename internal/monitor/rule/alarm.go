package rule

import (
	"time"

	"k8s.io/apimachinery/pkg/types"

	slipwayv1alpha1 "github.com/slipway-dev/slipway/api/v1alpha1"
)

// Object says which object.
type Object struct {
	Group     string    `json:"g,omitempty"`
	Version   string    `json:"v,omitempty"`
	Kind      string    `json:"k"`
	Resource  string    `json:"r,omitempty"`
	Namespace string    `json:"ns,omitempty"`
	Name      string    `json:"n"`
	UID       types.UID `json:"u"`
	// Created is when it was made, in seconds since 1970, 0 if that is not known.
	Created int64 `json:"c,omitempty"`
}

// Alarm is an alarm that was raised, or that has ended.
type Alarm struct {
	// Key identifies this message: the same change raises an alarm with the same key, however often it is looked at.
	Key string
	// Raised is the key with which the alarm was raised: that of an alarm and of its end is the same.
	Raised string
	// Ended reports whether it has ended, and Reason why.
	Ended  bool
	Reason EndReason
	// Rule and RuleUID say which rule.
	Rule    string
	RuleUID types.UID
	// Severity is how bad it is, and Message what it is: at most MaxText bytes, without control characters, without secrets.
	Severity slipwayv1alpha1.MonitorSeverity
	Message  string
	// Object is the object, and ResourceVersion a version at which it was there, empty if none is known.
	Object          Object
	ResourceVersion string
	// Since is since when the rule holds for it, and At when the alarm was raised or has ended.
	Since, At time.Time
	// Event and Webhooks say who is told.
	Event    bool
	Webhooks []string
}

// EndReason is why an alarm has ended.
type EndReason string

const (
	// Resolved means that what the rule says does not hold any more.
	Resolved EndReason = "Resolved"
	// ObjectDeleted means that the object is gone.
	ObjectDeleted EndReason = "ObjectDeleted"
	// NotSelected means that the rule is not about the object any more.
	NotSelected EndReason = "NotSelected"
	// RuleSuspended means that the rule is suspended.
	RuleSuspended EndReason = "RuleSuspended"
	// RuleDeleted means that the rule is gone, or does not compile any more.
	RuleDeleted EndReason = "RuleDeleted"
)
