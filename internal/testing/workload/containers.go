package workload

import "context"

// Containers plays the containers of pods in which every command ends well at once.
type Containers struct{}

// Exec runs a command.
func (Containers) Exec(ctx context.Context, _, _, _ string, _ []string) error { return ctx.Err() }
