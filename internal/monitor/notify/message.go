package notify

import (
	"encoding/json"
	"strings"
	"time"

	"github.com/slipway-dev/slipway/internal/monitor/rule"
	"github.com/slipway-dev/slipway/internal/monitor/store"
	"github.com/slipway-dev/slipway/internal/redact"
)

// The outputs of messages, as they stand in the outbox.
const (
	// OutputEvent makes a Kubernetes Event. It is followed by a slash and the namespace: the messages about one namespace do not wait
	// for those about another. What an older version left has none.
	OutputEvent = "event"
	// OutputWebhook is followed by the name of a webhook, and a slash and the namespace likewise.
	OutputWebhook = "webhook/"
)

// The types of the CloudEvents.
const (
	TypeRaised = "dev.slipway.monitor.alarm.raised"
	TypeEnded  = "dev.slipway.monitor.alarm.ended"
)

// Event is an alarm as a CloudEvent.
type Event struct {
	SpecVersion string `json:"specversion"`
	// ID is the key of the alarm: the same ID is the same event.
	ID string `json:"id"`
	// Source is the monitor, Type what happened, and Subject the object.
	Source      string    `json:"source"`
	Type        string    `json:"type"`
	Subject     string    `json:"subject"`
	Time        time.Time `json:"time"`
	ContentType string    `json:"datacontenttype"`
	Data        Data      `json:"data"`
}

// Data is what an Event says.
type Data struct {
	// Alarm identifies the alarm: it is the same when it is raised and when it ends.
	Alarm    string `json:"alarm"`
	Rule     string `json:"rule"`
	Severity string `json:"severity"`
	Message  string `json:"message"`
	// Object is which object.
	Object DataObject `json:"object"`
	// Since is since when the rule holds.
	Since time.Time `json:"since"`
	// EndReason is why it has ended, empty for one that was raised.
	EndReason string `json:"endReason,omitempty"`
}

// DataObject is which object.
type DataObject struct {
	Group     string `json:"group,omitempty"`
	Version   string `json:"version,omitempty"`
	Kind      string `json:"kind"`
	Namespace string `json:"namespace,omitempty"`
	Name      string `json:"name"`
	UID       string `json:"uid"`
	// Created is when it was made, absent if that is not known.
	Created time.Time `json:"created,omitzero"`
	// ResourceVersion is a version at which it was there, absent if none is known.
	ResourceVersion string `json:"resourceVersion,omitempty"`
}

// Messages returns what has to be sent because of an alarm: to webhooks of which a minimum is not above the severity, and for an
// Event. Webhooks that are not configured are left out. Source names the monitor, such as a URI of the cluster.
func Messages(a *rule.Alarm, webhooks map[string]*Webhook, source string) []store.Message {
	event := eventOf(a, source)
	body, _ := json.Marshal(event) // of texts and times of this age: never fails
	message := func(output string) store.Message {
		return store.Message{Key: event.ID + "/" + kindOf(output), Output: output, Body: body, Created: a.At, Next: a.At}
	}
	var messages []store.Message
	if a.Event {
		messages = append(messages, message(OutputEvent+"/"+a.Object.Namespace))
	}
	for _, name := range a.Webhooks {
		if w := webhooks[name]; w != nil && w.wants(a.Severity) {
			messages = append(messages, message(OutputWebhook+name+"/"+a.Object.Namespace))
		}
	}
	return messages
}

// kindOf is an output without the namespace.
func kindOf(output string) string {
	if output == OutputEvent || strings.HasPrefix(output, OutputEvent+"/") {
		return OutputEvent
	}
	if name, ok := webhookOf(output); ok {
		return OutputWebhook + name
	}
	return output
}

// webhookOf returns the name of the webhook of an output.
func webhookOf(output string) (name string, ok bool) {
	name, ok = strings.CutPrefix(output, OutputWebhook)
	name, _, _ = strings.Cut(name, "/")
	return name, ok
}

func eventOf(a *rule.Alarm, source string) Event {
	o := a.Object
	e := Event{
		SpecVersion: "1.0", ID: a.Key, Source: source, Type: TypeRaised, Time: a.At, ContentType: "application/json",
		Subject: o.Kind + "/" + o.Name,
		Data: Data{
			Alarm: a.Raised, Rule: a.Rule, Severity: string(a.Severity), Message: rule.Text(redact.Clean(a.Message)), Since: a.Since,
			EndReason: string(a.Reason),
			Object: DataObject{
				Group: o.Group, Version: o.Version, Kind: o.Kind, Namespace: o.Namespace, Name: o.Name, UID: string(o.UID),
				ResourceVersion: a.ResourceVersion,
			},
		},
	}
	if o.Created != 0 {
		e.Data.Object.Created = time.Unix(o.Created, 0).UTC()
	}
	if o.Namespace != "" {
		e.Subject = o.Namespace + "/" + e.Subject
	}
	if a.Ended {
		e.Type = TypeEnded
	}
	return e
}
