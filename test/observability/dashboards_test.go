package observability

import (
	"slices"
	"strings"
	"testing"
)

func TestDashboards(t *testing.T) {
	uids := map[string]bool{}
	for _, d := range loadDashboards(t) {
		if d.UID == "" || uids[d.UID] || d.Title == "" || d.UID+".json" != d.file {
			t.Errorf("%s: the uid is %q, the title %q", d.file, d.UID, d.Title)
		}
		uids[d.UID] = true
		if !slices.ContainsFunc(d.Templating.List, func(v variable) bool { return v.Name == "datasource" && v.Type == "datasource" }) {
			t.Errorf("%s: no variable chooses the data source", d.file)
		}
		ids := map[int]bool{}
		for i, p := range d.Panels {
			if ids[p.ID] {
				t.Errorf("%s: panel %q has the number of another one, %d", d.file, p.Title, p.ID)
			}
			ids[p.ID] = true
			for _, other := range d.Panels[:i] {
				if overlap(p, other) {
					t.Errorf("%s: panels %q and %q lie above each other", d.file, p.Title, other.Title)
				}
			}
			if p.Type != "row" {
				checkPanel(t, d.file, p)
			}
		}
	}
}

func overlap(a, b panel) bool {
	return a.GridPos.X < b.GridPos.X+b.GridPos.W && b.GridPos.X < a.GridPos.X+a.GridPos.W &&
		a.GridPos.Y < b.GridPos.Y+b.GridPos.H && b.GridPos.Y < a.GridPos.Y+a.GridPos.H
}

func checkPanel(t *testing.T, file string, p panel) {
	t.Helper()
	if p.Title == "" || !strings.HasSuffix(p.Description, ".") {
		t.Errorf("%s: panel %d %q has the description %q", file, p.ID, p.Title, p.Description)
	}
	if p.GridPos.W == 0 || p.GridPos.H == 0 || p.GridPos.X+p.GridPos.W > 24 {
		t.Errorf("%s: panel %q is nowhere: %+v", file, p.Title, p.GridPos)
	}
	if len(p.Targets) == 0 {
		t.Errorf("%s: panel %q shows nothing", file, p.Title)
	}
	for _, q := range p.Targets {
		if q.Datasource["uid"] != "${datasource}" {
			t.Errorf("%s: panel %q asks %v", file, p.Title, q.Datasource)
		}
		if strings.Contains(grafana.Replace(q.Expr), "$") {
			t.Errorf("%s: panel %q has a variable that the tests do not know: %s", file, p.Title, q.Expr)
		}
		if q.LegendFormat == "" && len(p.Targets) > 1 {
			t.Errorf("%s: panel %q has lines without a name", file, p.Title)
		}
	}
}
