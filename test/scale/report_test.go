//go:build scale

package scale

import (
	"encoding/json"
	"fmt"
	"os"
	"runtime"
	"strings"
	"sync"
	"time"
)

// row is one line of the table.
type row struct {
	What     string             `json:"what"`
	Goal     string             `json:"goal"`
	Measured string             `json:"measured"`
	Met      string             `json:"met"`
	Values   map[string]float64 `json:"values,omitempty"`
	Note     string             `json:"note,omitempty"`
}

// report is what a run found.
type report struct {
	mu sync.Mutex

	Time       time.Time         `json:"time"`
	Go         string            `json:"go"`
	Cores      int               `json:"cores"`
	Fsync      string            `json:"etcdFsync"`
	QPS        int               `json:"clientQPS"`
	Settings   map[string]int    `json:"settings"`
	LoadBefore string            `json:"loadBefore"`
	LoadAfter  string            `json:"loadAfter"`
	Rows       []row             `json:"rows"`
	Requests   map[string]string `json:"requests,omitempty"`
}

func (r *report) describe() {
	r.Time = time.Now().UTC()
	r.Go = runtime.Version()
	r.Cores = runtime.NumCPU()
	r.Fsync = "off (--unsafe-no-fsync)"
	if fsync() {
		r.Fsync = "on"
	}
	r.QPS = -1
	r.Settings = map[string]int{
		"apps": size.apps, "manyApps": size.manyApps, "rounds": size.rounds,
		"samples": size.samples, "unrelated": size.unrelated, "perNamespace": size.perNamespace, "backups": size.backups,
	}
	r.LoadBefore = load()
}

// add appends a line; met is nil where there is no goal.
func (r *report) add(line row, met *bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	switch {
	case met == nil:
		line.Met = "-"
	case *met:
		line.Met = "yes"
	default:
		line.Met = "NO"
	}
	r.Rows = append(r.Rows, line)
	fmt.Printf("%s | goal %s | %s | %s\n", line.What, line.Goal, line.Measured, line.Met)
}

// requests keeps what exactly was counted.
func (r *report) requests(what, counted string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.Requests == nil {
		r.Requests = map[string]string{}
	}
	r.Requests[what] = counted
	fmt.Printf("requests of %s: %s\n", what, counted)
}

// finish prints the table and appends the report to the file that BENCH_OUT names.
func (r *report) finish() error {
	if len(r.Rows) == 0 {
		return nil
	}
	r.LoadAfter = load()
	var table strings.Builder
	fmt.Fprintf(&table, "\n%d cores, %s, etcd fsync %s, client QPS %d, load average before %s, after %s\n\n",
		r.Cores, r.Go, r.Fsync, r.QPS, r.LoadBefore, r.LoadAfter)
	table.WriteString("| what | goal | measured | met |\n|---|---|---|---|\n")
	for _, line := range r.Rows {
		fmt.Fprintf(&table, "| %s | %s | %s | %s |\n", line.What, line.Goal, line.Measured, line.Met)
	}
	fmt.Println(table.String())
	path := os.Getenv("BENCH_OUT")
	if path == "" {
		return nil
	}
	raw, err := json.Marshal(r)
	if err != nil {
		return fmt.Errorf("encode the report: %w", err)
	}
	file, err := os.OpenFile(path, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o644)
	if err != nil {
		return fmt.Errorf("open BENCH_OUT: %w", err)
	}
	defer file.Close()
	if _, err := file.Write(append(raw, '\n')); err != nil {
		return fmt.Errorf("write BENCH_OUT: %w", err)
	}
	return nil
}

// load is the machine's load average, because what else runs is part of a result.
func load() string {
	raw, err := os.ReadFile("/proc/loadavg")
	if err != nil {
		return "unknown"
	}
	return strings.Join(strings.Fields(string(raw))[:3], " ")
}

func met(ok bool) *bool { return &ok }
