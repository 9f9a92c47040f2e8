//go:build chaos

package chaos

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
)

// report counts what happened.
type report struct {
	mutex sync.Mutex
	start time.Time

	rounds     int
	kills      map[string]int
	operations map[operation]int
	// converged is how long it took from the last kill of a storm until the cluster was what
	// it should be, and away how long it took from a kill until a write was acknowledged.
	converged []time.Duration
	away      map[victim][]time.Duration
	// bystanders is how often an application was looked at that nobody had changed.
	bystanders int
	// pods are all that were seen, and baseless is how many of them were restarted, or came
	// or went, though nothing had been asked for that would explain it.
	pods     map[types.UID]bool
	baseless int
	// outdated are those that the kubelet started with an earlier content of a Secret.
	outdated map[types.UID]bool
	// templates is how many changes of a pod template were asked for, and rollouts how many
	// of them the Deployments went through: changes that come quickly may be one rollout.
	templates, rollouts int
	// journal is how many small writes were acknowledged, late how many of them in the last
	// tenth of a second before a kill of etcd, and lost how many were not there any more.
	journal, late, lost int
	// ended are the operator's containers that ended otherwise than by our SIGKILL.
	ended map[string]string
}

func newReport() *report {
	return &report{
		start: time.Now(), kills: map[string]int{}, operations: map[operation]int{},
		away: map[victim][]time.Duration{}, pods: map[types.UID]bool{}, outdated: map[types.UID]bool{}, ended: map[string]string{},
	}
}

func (r *report) killed(what string) {
	r.mutex.Lock()
	defer r.mutex.Unlock()
	r.kills[what]++
}

// played counts what a round did.
func (r *report) played(p round) {
	r.rounds++
	for _, c := range p.changes {
		r.operations[c.operation]++
	}
}

// wrote counts entries of the journal, those of them right before a kill of etcd, and
// finds out how long nothing could be written after a kill.
func (r *report) wrote(entries []entry, kills []struck) {
	r.journal += len(entries)
	for _, k := range kills {
		var back time.Time
		for _, e := range entries {
			if before := k.at.Sub(e.at); k.victim == etcd && before > 0 && before < 100*time.Millisecond {
				r.late++
			}
			if e.sent.After(k.at) && (back.IsZero() || e.at.Before(back)) {
				back = e.at
			}
		}
		if !back.IsZero() && (k.victim == apiServer || k.victim == etcd) {
			r.away[k.victim] = append(r.away[k.victim], back.Sub(k.at))
		}
	}
}

// operator notes containers that ended by themselves: a leader ends when the API server
// is away for too long.
func (r *report) operator(pods []corev1.Pod) {
	for i := range pods {
		for _, status := range pods[i].Status.ContainerStatuses {
			ended := status.LastTerminationState.Terminated
			if ended != nil && (ended.ExitCode != 137 || ended.Reason == "OOMKilled") {
				r.ended[ended.ContainerID] = fmt.Sprintf("%s, exit code %d", ended.Reason, ended.ExitCode)
			}
		}
	}
}

func (r *report) lines() []string {
	var changed int
	for o, n := range r.operations {
		if o != create && o != remove {
			changed += n
		}
	}
	lines := []string{
		fmt.Sprintf("%d rounds in %d storms, in %v", r.rounds, len(r.converged), time.Since(r.start).Round(time.Second)),
		fmt.Sprintf("kills: %s", counts(r.kills)),
		fmt.Sprintf("WebApps: %d created, %d changes, %d deleted (%s)", r.operations[create], changed, r.operations[remove], counts(r.operations)),
		fmt.Sprintf("%d pods seen; %d restarted, added or removed without cause, looking %d times at an application that nobody had changed; %d changes of a pod template led to %d rollouts", len(r.pods), r.baseless, r.bystanders, r.templates, r.rollouts),
		fmt.Sprintf("%d pods were started by the kubelet with outdated content of their Secret", len(r.outdated)),
		fmt.Sprintf("%d small writes acknowledged, %d of them less than 100 ms before a kill of etcd; %d lost", r.journal, r.late, r.lost),
		fmt.Sprintf("operator containers that ended otherwise: %d %v", len(r.ended), slices.Sorted(maps.Values(r.ended))),
	}
	if len(r.converged) > 0 {
		lines = append(lines, "from the last kill of a storm until everything was as it should be: "+spread(r.converged))
	}
	for _, v := range []victim{apiServer, etcd} {
		if took := r.away[v]; len(took) > 0 {
			lines = append(lines, fmt.Sprintf("from a kill of %s until a write was acknowledged: %s", v, spread(took)))
		}
	}
	return lines
}

// spread says how durations are distributed.
func spread(took []time.Duration) string {
	sorted := slices.Sorted(slices.Values(took))
	at := func(i int) time.Duration { return sorted[i].Round(10 * time.Millisecond) }
	return fmt.Sprintf("min %v, median %v, max %v of %d", at(0), at((len(sorted)-1)/2), at(len(sorted)-1), len(sorted))
}

func counts[K ~string](numbers map[K]int) string {
	var list []string
	for _, name := range slices.Sorted(maps.Keys(numbers)) {
		list = append(list, fmt.Sprintf("%s %d", name, numbers[name]))
	}
	return strings.Join(list, "; ")
}
