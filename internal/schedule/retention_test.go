package schedule

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// history returns snapshots at the times, the newest first. An ID is the time. A time that ends with ? is not verified.
func history(times ...string) []Snapshot {
	var snapshots []Snapshot
	for _, text := range times {
		plain, unverified := strings.CutSuffix(text, "?")
		t, err := time.Parse("2006-01-02 15:04", plain)
		if err != nil {
			panic(err)
		}
		snapshots = append(snapshots, Snapshot{ID: text, Time: t, Verified: !unverified})
	}
	return snapshots
}

// kept returns a line for each kept snapshot.
func kept(plan Plan) []string {
	var lines []string
	for _, d := range plan.Keep {
		lines = append(lines, d.ID+": "+strings.Join(d.Reasons, ", "))
	}
	return lines
}

func TestKeep(t *testing.T) {
	berlin, err := time.LoadLocation("Europe/Berlin")
	if err != nil {
		t.Fatal(err)
	}
	now := at("2026-12-31T00:00:00Z")
	for name, test := range map[string]struct {
		retention Retention
		snapshots []Snapshot
		want      []string
	}{
		"the last ones": {
			Retention{Last: 2},
			history("2026-03-01 00:00", "2026-03-02 00:00", "2026-03-03 00:00"),
			[]string{"2026-03-03 00:00: newest verified snapshot, last", "2026-03-02 00:00: last"},
		},
		"the newest of each day": {
			Retention{Daily: 2},
			history("2026-03-01 23:00", "2026-03-03 01:00", "2026-03-03 02:00", "2026-02-01 00:00"),
			[]string{"2026-03-03 02:00: newest verified snapshot, daily", "2026-03-01 23:00: daily"},
		},
		"days of the zone": {
			Retention{Daily: 2, Zone: berlin},
			history("2026-03-01 22:30", "2026-03-01 23:30", "2026-03-02 12:00"),
			[]string{"2026-03-02 12:00: newest verified snapshot, daily", "2026-03-01 22:30: daily"},
		},
		"weeks begin on Monday": {
			Retention{Weekly: 2},
			history("2026-12-27 12:00", "2026-12-28 12:00", "2026-12-30 12:00"),
			[]string{"2026-12-30 12:00: newest verified snapshot, weekly", "2026-12-27 12:00: weekly"},
		},
		"hours that show the same time": {
			Retention{Hourly: 2, Zone: berlin},
			history("2026-10-25 00:30", "2026-10-25 01:30", "2026-10-24 23:30"),
			[]string{"2026-10-25 01:30: newest verified snapshot, hourly", "2026-10-25 00:30: hourly"},
		},
		"months and years": {
			Retention{Monthly: 2, Yearly: 2},
			history("2026-03-01 00:00", "2026-01-31 00:00", "2025-12-31 00:00", "2025-11-01 00:00", "2024-12-01 00:00"),
			[]string{"2026-03-01 00:00: newest verified snapshot, monthly, yearly", "2026-01-31 00:00: monthly", "2025-12-31 00:00: yearly"},
		},
		"a period before the newest, not before now": {
			Retention{Within: Period{Days: 30}},
			history("2026-03-31 00:00", "2026-03-01 00:00", "2026-02-28 23:59"),
			[]string{"2026-03-31 00:00: newest verified snapshot, within", "2026-03-01 00:00: within"},
		},
		"a calendar month": {
			Retention{Within: Period{Months: 1}},
			history("2026-03-31 00:00", "2026-02-28 00:00", "2026-02-27 23:59"),
			[]string{"2026-03-31 00:00: newest verified snapshot, within", "2026-02-28 00:00: within"},
		},
		"unverified ones do not count": {
			Retention{Last: 1},
			history("2026-03-04 00:00?", "2026-03-03 00:00", "2026-03-02 00:00?", "2026-03-01 00:00"),
			[]string{"2026-03-04 00:00?: not verified yet", "2026-03-03 00:00: newest verified snapshot, last"},
		},
		"unverified ones within a period": {
			Retention{Within: Period{Days: 2}},
			history("2026-03-03 00:00", "2026-03-02 00:00?", "2026-02-20 00:00?"),
			[]string{"2026-03-03 00:00: newest verified snapshot, within", "2026-03-02 00:00?: within"},
		},
		"nothing is verified": {
			Retention{Last: 1},
			history("2026-03-03 00:00?", "2026-03-02 00:00?"),
			[]string{"2026-03-03 00:00?: not verified yet", "2026-03-02 00:00?: not verified yet"},
		},
		"the future": {
			Retention{Last: 1},
			history("2027-03-03 00:00", "2027-01-01 00:00?", "2026-03-02 00:00", "2026-03-01 00:00"),
			[]string{"2027-03-03 00:00: its time is in the future", "2027-01-01 00:00?: its time is in the future", "2026-03-02 00:00: newest verified snapshot, last"},
		},
		"no rule": {
			Retention{},
			history("2026-03-02 00:00", "2026-03-01 00:00"),
			[]string{"2026-03-02 00:00: newest verified snapshot"},
		},
		"no snapshot": {Retention{Last: 1}, nil, nil},
	} {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(test.want, kept(test.retention.Keep(test.snapshots, now))); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
}

func TestRemovedSnapshotsHaveAReason(t *testing.T) {
	plan := Retention{Last: 1}.Keep(history("2026-03-03 00:00", "2026-03-02 00:00?", "2026-03-01 00:00"), at("2026-03-03T00:00:00Z"))
	var got []string
	for _, d := range plan.Remove {
		got = append(got, d.ID+": "+strings.Join(d.Reasons, ", "))
	}
	want := []string{"2026-03-02 00:00?: not verified, and a newer snapshot is", "2026-03-01 00:00: no rule keeps it"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

func TestAMassDeletionNeedsAConfirmation(t *testing.T) {
	var snapshots []Snapshot
	for i := range 12 {
		snapshots = append(snapshots, Snapshot{ID: fmt.Sprint(i), Time: at("2026-03-01T00:00:00Z").AddDate(0, 0, i), Verified: true})
	}
	plan := Retention{Last: 1}.Keep(snapshots, at("2026-04-01T00:00:00Z"))
	var mass *MassDeletionError
	if err := plan.Check(10, false); !errors.As(err, &mass) || mass.Remove != 11 || mass.Keep != 1 {
		t.Errorf("11 of 12: got %v", err)
	}
	if err := plan.Check(10, true); err != nil {
		t.Errorf("confirmed: got %v", err)
	}
	if err := plan.Check(11, false); err != nil {
		t.Errorf("at the limit: got %v", err)
	}
}

func TestValidate(t *testing.T) {
	for name, test := range map[string]struct {
		retention Retention
		field     string
	}{
		"a rule":            {Retention{Daily: 7}, ""},
		"a period":          {Retention{Within: Period{Days: 30}}, ""},
		"nothing":           {Retention{}, "retention"},
		"a negative number": {Retention{Last: 1, Weekly: -1}, "retention.weekly"},
		"a large number":    {Retention{Hourly: 10000}, "retention.hourly"},
		"a negative period": {Retention{Last: 1, Within: Period{Days: -1}}, FieldRetentionPolicy},
	} {
		err := test.retention.Validate()
		var failure *Error
		if test.field == "" && err != nil {
			t.Errorf("%s: got %v", name, err)
		}
		if test.field != "" && (!errors.As(err, &failure) || failure.Field != test.field) {
			t.Errorf("%s: got %v, want %s", name, err, test.field)
		}
	}
}
