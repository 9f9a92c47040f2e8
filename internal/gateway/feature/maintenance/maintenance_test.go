package maintenance

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	slipwayv1alpha1 "github.com/slipway-dev/slipway/api/v1alpha1"
	"github.com/slipway-dev/slipway/internal/gateway/feature"
	"github.com/slipway-dev/slipway/internal/schedule"
)

// once makes everything anew.
type once struct{ feature.Checks }

func (once) Once(_ string, make func() any) any { return make() }

func rules() feature.Rule { return feature.Rule{Checks: once{}} }

func at(t *testing.T, text string) time.Time {
	t.Helper()
	parsed, err := time.Parse(time.RFC3339, text)
	if err != nil {
		t.Fatal(err)
	}
	return parsed
}

func compiled(t *testing.T, in slipwayv1alpha1.Maintenance) *Policy {
	t.Helper()
	rule, f := read(&slipwayv1alpha1.GatewayPolicySettings{Maintenance: &in}, feature.Source{})
	if f != nil {
		t.Fatal(f.Message)
	}
	policy, f := compile(rule, rules())
	if f != nil {
		t.Fatal(f.Message)
	}
	return policy
}

func TestWhenARouteIsClosedAndUntilWhen(t *testing.T) {
	night := slipwayv1alpha1.MaintenanceWindow{Schedule: "0 2 * * *", Duration: "2h"}
	late := slipwayv1alpha1.MaintenanceWindow{Schedule: "30 3 * * *", Duration: "1h"}
	sunday := slipwayv1alpha1.MaintenanceWindow{Schedule: "0 2 * * 0", Duration: "24h"}
	for name, tc := range map[string]struct {
		in     slipwayv1alpha1.Maintenance
		now    string
		closed bool
		until  string
	}{
		"without windows":           {slipwayv1alpha1.Maintenance{}, "2026-11-30T12:00:00Z", true, ""},
		"before it begins":          {one(night), "2026-11-30T01:59:59Z", false, ""},
		"when it begins":            {one(night), "2026-11-30T02:00:00Z", true, "2026-11-30T04:00:00Z"},
		"just before it ends":       {one(night), "2026-11-30T03:59:59.999Z", true, "2026-11-30T04:00:00Z"},
		"when it ends":              {one(night), "2026-11-30T04:00:00Z", false, ""},
		"one goes on in another":    {one(night, late), "2026-11-30T02:30:00Z", true, "2026-11-30T04:00:00Z"},
		"the other goes on":         {one(night, late), "2026-11-30T04:00:00Z", true, "2026-11-30T04:30:00Z"},
		"the next of two":           {one(sunday, night), "2026-11-28T12:00:00Z", false, ""},
		"over midnight":             {one(sunday), "2026-11-30T01:00:00Z", true, "2026-11-30T02:00:00Z"},
		"in a zone":                 {zone("Europe/Berlin", night), "2026-11-30T01:00:00Z", true, "2026-11-30T03:00:00Z"},
		"the hour that comes twice": {zone("Europe/Berlin", night), "2026-10-25T01:00:00Z", true, "2026-10-25T02:00:00Z"},
		"the hour that is left out": {zone("Europe/Berlin", night), "2026-03-29T01:00:00Z", true, "2026-03-29T03:00:00Z"},
		"it is years until then":    {one(slipwayv1alpha1.MaintenanceWindow{Schedule: "0 0 29 2 *", Duration: "1h"}), "2026-11-30T00:00:00Z", false, ""},
	} {
		t.Run(name, func(t *testing.T) {
			closed, until := compiled(t, tc.in).At(at(t, tc.now))
			got := ""
			if !until.IsZero() {
				got = until.UTC().Format(time.RFC3339Nano)
			}
			if closed != tc.closed || got != tc.until {
				t.Errorf("closed %v until %s, want %v until %s", closed, got, tc.closed, tc.until)
			}
		})
	}
}

func one(windows ...slipwayv1alpha1.MaintenanceWindow) slipwayv1alpha1.Maintenance {
	return slipwayv1alpha1.Maintenance{Windows: windows}
}

func zone(name string, windows ...slipwayv1alpha1.MaintenanceWindow) slipwayv1alpha1.Maintenance {
	return slipwayv1alpha1.Maintenance{Windows: windows, TimeZone: name}
}

// A window may begin again before it ends.
func TestWindowsThatNeverEnd(t *testing.T) {
	policy := compiled(t, one(slipwayv1alpha1.MaintenanceWindow{Schedule: "* * * * *", Duration: "24h"}))
	now := at(t, "2026-11-30T12:00:00Z")
	closed, until := policy.At(now)
	if !closed || !until.Equal(now.Add(24*time.Hour)) {
		t.Errorf("closed %v until %v", closed, until)
	}
}

// FuzzAt compares with looking at each minute: a route is closed if a window has begun that has not ended, and stays so until then.
func FuzzAt(f *testing.F) {
	f.Add("0 2 * * *", uint16(120), "30 3 * * 1", uint16(60), "Europe/Berlin", int64(1795996800))
	f.Add("*/7 * * * *", uint16(3), "0 0 1 * *", uint16(1440), "", int64(1795996800))
	f.Fuzz(func(t *testing.T, first string, minutes uint16, second string, others uint16, zone string, unix int64) {
		rule := &Rule{TimeZone: zone, Windows: []Window{
			{first, time.Duration(minutes%1440+1) * time.Minute}, {second, time.Duration(others%1440+1) * time.Minute},
		}}
		policy, f := compile(rule, rules())
		if f != nil {
			return
		}
		now := time.Unix(1_700_000_000+(unix%400_000_000+400_000_000)%400_000_000, 0).Truncate(time.Minute)
		closed, until := policy.At(now)
		if want := isClosed(t, rule, now); closed != want {
			t.Fatalf("closed %v, want %v", closed, want)
		}
		if closed != until.After(now) {
			t.Fatalf("closed is %v, until %v", closed, until)
		}
		// What is remembered of earlier looks changes nothing, in whichever direction the clock goes.
		for step := range 200 {
			when := now.Add(time.Duration((step*37)%300-100) * time.Minute)
			fresh, _ := compile(rule, rules())
			want, ends := fresh.At(when)
			if want != isClosed(t, rule, when) {
				t.Fatalf("closed is %v at %v", want, when)
			}
			if got, then := policy.At(when); got != want || !then.Equal(ends) {
				t.Fatalf("closed is %v until %v at %v, want %v until %v", got, then, when, want, ends)
			}
		}
	})
}

// isClosed asks each window alone.
func isClosed(t *testing.T, rule *Rule, now time.Time) bool {
	t.Helper()
	for _, window := range rule.Windows {
		when, err := schedule.Parse(window.Schedule, rule.TimeZone)
		if err != nil {
			t.Fatal(err)
		}
		// A window is open if it has begun after now minus its duration.
		if begun := when.Next(now.Add(-window.Duration)); !begun.IsZero() && !begun.After(now) {
			return true
		}
	}
	return false
}

func TestWhatCannotBeAWindow(t *testing.T) {
	window := func(schedule string, duration slipwayv1alpha1.Duration) slipwayv1alpha1.Maintenance {
		return one(slipwayv1alpha1.MaintenanceWindow{Schedule: schedule, Duration: duration})
	}
	for name, tc := range map[string]struct {
		in   slipwayv1alpha1.Maintenance
		want string
	}{
		"no cron":          {window("at night", "1h"), `maintenance.windows[0].schedule: "at night" is not a cron expression: it has 2 fields`},
		"never":            {window("0 0 30 2 *", "1h"), "maintenance.windows[0].schedule: "},
		"no duration":      {window("0 2 * * *", ""), "maintenance.windows[0].duration: 0s is not from 1m to 24h"},
		"a short one":      {window("0 2 * * *", "59s"), "maintenance.windows[0].duration: 59s is not from 1m to 24h"},
		"a long one":       {window("0 2 * * *", "25h"), "maintenance.windows[0].duration: "},
		"no zone, always":  {zone("Europe/Atlantis"), "maintenance.timeZone: "},
		"no zone":          {zone("Europe/Atlantis", slipwayv1alpha1.MaintenanceWindow{Schedule: "0 2 * * *", Duration: "1h"}), "maintenance.timeZone: "},
		"a split header":   {slipwayv1alpha1.Maintenance{ContentType: "text/html\r\nX-A: b"}, "maintenance.contentType holds a control character"},
		"too many windows": {one(make([]slipwayv1alpha1.MaintenanceWindow, 9)...), "maintenance.windows: 9 are more than 8"},
		"a long body":      {slipwayv1alpha1.Maintenance{Body: string(make([]byte, 16<<10+1))}, "maintenance.body: 16385 bytes are more than 16384"},
	} {
		t.Run(name, func(t *testing.T) {
			rule, f := read(&slipwayv1alpha1.GatewayPolicySettings{Maintenance: &tc.in}, feature.Source{})
			if f == nil {
				_, f = compile(rule, rules())
			}
			if f == nil {
				t.Fatal("it is taken")
			}
			if got := f.Message[:min(len(f.Message), len(tc.want))]; got != tc.want {
				t.Errorf("(-want +got):\n%s", cmp.Diff(tc.want, f.Message))
			}
		})
	}
}

// The cost of a look does not depend on how rare windows are: whoever writes routes decides that.
func BenchmarkAt(b *testing.B) {
	now := time.Date(2026, 11, 30, 12, 0, 30, 0, time.UTC)
	for name, cron := range map[string]string{"weekly": "0 2 * * 0", "each minute": "* * * * *", "rare": "0 0 29 2 *"} {
		rule := &Rule{TimeZone: "Europe/Berlin"}
		for range maxWindows {
			rule.Windows = append(rule.Windows, Window{cron, time.Minute})
		}
		policy, f := compile(rule, rules())
		if f != nil {
			b.Fatal(f)
		}
		b.Run(name, func(b *testing.B) {
			for b.Loop() {
				policy.look(now)
			}
		})
	}
}
