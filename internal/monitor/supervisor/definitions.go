package supervisor

import (
	"context"
	"log/slog"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/slipway-dev/slipway/internal/monitor/change"
)

// definitionKind is the kind of the definitions themselves.
var definitionKind = change.Kind{
	Group: "apiextensions.k8s.io", Version: "v1", Kind: "CustomResourceDefinition", Resource: "customresourcedefinitions",
}

// definitions is a Sink for the definitions. It keeps what is needed of them in memory, so they are listed at each start.
type definitions struct {
	// changed is called when there is something new. It does not wait.
	changed func()
	log     *slog.Logger

	// One call of the journal at a time uses these. listed are those of a list that has not ended.
	listed map[string]definition
	packer packer

	mutex    sync.Mutex
	complete bool
	known    map[string]definition
}

func newDefinitions(log *slog.Logger, changed func()) *definitions {
	return &definitions{log: log, changed: changed, known: map[string]definition{}}
}

// all returns the definitions. complete reports whether they were listed: there are no others.
func (d *definitions) all() (known []definition, complete bool) {
	d.mutex.Lock()
	defer d.mutex.Unlock()
	return slices.Collect(maps.Values(d.known)), d.complete
}

// Known implements Sink.
func (d *definitions) Known(context.Context) ([]change.Kind, error) { return nil, nil }

// Open implements Sink.
func (d *definitions) Open(context.Context, change.Kind, Schema) (Journal, error) { return d, nil }

// Gone implements Sink.
func (d *definitions) Gone(context.Context, change.Kind, time.Time) error { return nil }

// Resume implements Journal.
func (d *definitions) Resume() string { return "" }

// Event implements Journal.
func (d *definitions) Event(_ context.Context, event Event) error {
	if event.Type == Deleted {
		d.change(func() { delete(d.known, event.Object.Name) })
		return nil
	}
	read := d.read(event.Object)
	d.change(func() { d.known[event.Object.Name] = read })
	return nil
}

// read returns a definition, and one that cannot be followed when it makes no sense.
func (d *definitions) read(object Object) definition {
	read, err := readDefinition(object, &d.packer)
	if err != nil {
		object.Oversized = true // what its name says is all there is
		read, _ = readDefinition(object, &d.packer)
		read.problem = "its definition cannot be read"
		d.log.Warn("a definition cannot be read", "name", reasonOf(object.Name), "error", reasonOf(err.Error()))
	}
	return read
}

func (d *definitions) change(do func()) {
	d.mutex.Lock()
	do()
	d.mutex.Unlock()
	d.changed()
}

// Bookmark implements Journal.
func (d *definitions) Bookmark(context.Context, string, time.Time) error { return nil }

// BeginList implements Journal.
func (d *definitions) BeginList(context.Context, Gap) error {
	d.listed = map[string]definition{}
	return nil
}

// Listed implements Journal.
func (d *definitions) Listed(_ context.Context, object Object) error {
	d.listed[object.Name] = d.read(object)
	return nil
}

// EndList implements Journal.
func (d *definitions) EndList(_ context.Context, _ string, complete bool) error {
	d.change(func() {
		if !complete {
			// One that cannot be told may be one that is known.
			merged := maps.Clone(d.known)
			maps.Copy(merged, d.listed)
			d.listed = merged
		}
		d.known, d.listed, d.complete = d.listed, nil, d.complete || complete
	})
	return nil
}

// SchemaChanged implements Journal.
func (d *definitions) SchemaChanged(context.Context, Schema) error { return nil }

// Lost implements Journal.
func (d *definitions) Lost(context.Context, Gap) error { return nil }
