package rule

import (
	"crypto/sha256"
	"encoding/hex"
	"hash/fnv"
	"strconv"
	"time"
)

// lookEvery is how often an expression that reads the time is evaluated.
const lookEvery = 5 * time.Minute

// step is one look at a rule and an object: the conditions are known, and time has passed.
type step struct {
	rule  *Rule
	state *state
	now   time.Time
	// version is that of the object if there is a change, and empty if only time has passed.
	version string
	// begun is since when the conditions hold if they hold for the first time.
	begun time.Time
	// again reports whether this change raises an alarm even if one stands.
	again bool
}

// run takes the step, and returns what it raises or ends. The state says then when it is due again.
func (t *step) run() []Alarm {
	s := t.state
	s.forget(t.rule, t.now)
	if s.Since != 0 && at(s.Since).After(t.now) {
		s.Since = t.now.UnixNano() // the clock was set back: counting begins again, so that nothing fires early
	}
	var alarms []Alarm
	switch {
	case !t.holds():
		if s.Fired != 0 {
			alarms = append(alarms, t.end())
		}
		s.Since, s.Cause = 0, ""
		if !t.onlyEarly() {
			s.Message, s.Health = "", ""
		}
	default:
		if s.Since == 0 {
			s.Since, s.Cause = min(t.begun.UnixNano(), t.now.UnixNano()), t.cause()
		}
		if t.again && s.Fired != 0 {
			s.Fired, s.Since, s.Cause = 0, t.now.UnixNano(), t.cause()
		}
		if s.Fired == 0 && !t.now.Before(at(s.Since).Add(t.rule.wait)) {
			alarms = append(alarms, t.fire())
		}
	}
	s.due = t.due()
	return alarms
}

// onlyEarly reports whether time alone is missing. The text of the alarm is kept then: when its time has come, nobody looks at the
// object again.
func (t *step) onlyEarly() bool {
	return t.rule.stuck != nil && t.state.Deleting != 0 && (t.rule.when == nil || t.state.When)
}

// holds reports whether all conditions do. A rule has at most one of changes, fight and stuck.
func (t *step) holds() bool {
	s, r := t.state, t.rule
	switch {
	case r.when != nil && !s.When:
		return false
	case r.changes != nil:
		return len(s.Times) >= r.changes.count
	case r.fight != nil:
		return s.fights(r.fight)
	case r.stuck != nil:
		return s.Deleting != 0 && !t.now.Before(at(s.Deleting).Add(r.stuck.after))
	}
	return true
}

// due is when time alone changes something.
func (t *step) due() (first time.Time) {
	s, r := t.state, t.rule
	earlier := func(when time.Time) {
		if !when.IsZero() && (first.IsZero() || when.Before(first)) {
			first = when
		}
	}
	if s.Since != 0 && s.Fired == 0 {
		earlier(at(s.Since).Add(r.wait))
	}
	if s.Since == 0 && t.onlyEarly() {
		earlier(at(s.Deleting).Add(r.stuck.after))
	}
	earlier(s.expires(r))
	earlier(at(s.Look))
	return first
}

// cause is what a first alarm is about: the version of the object, and the time if nobody changed it.
func (t *step) cause() string {
	if t.version != "" {
		return t.version
	}
	return "@" + strconv.FormatInt(t.now.UnixNano(), 10)
}

func (t *step) fire() Alarm {
	s, r := t.state, t.rule
	if s.Message == "" {
		s.Message = r.sentence(s, s.Health)
	}
	sum := sha256.Sum256(
		[]byte(string(r.UID) + "\x00" + strconv.FormatInt(r.Generation, 10) + "\x00" + string(s.Object.UID) + "\x00" + s.Cause),
	)
	s.Fired, s.Key, s.Rule, s.Severity, s.Event, s.Webhooks = t.now.UnixNano(),
		hex.EncodeToString(sum[:16]), r.Name, r.Severity, r.Event, r.Webhooks
	return s.alarm(r, t.now)
}

func (t *step) end() Alarm {
	alarm := t.state.end(t.rule, Resolved, t.now)
	t.state.Fired, t.state.Key = 0, ""
	return alarm
}

func (s *state) alarm(r *Rule, now time.Time) Alarm {
	return Alarm{
		Key: s.Key, Raised: s.Key, Rule: s.Rule, RuleUID: r.UID, Severity: s.Severity, Message: s.Message, Object: s.Object,
		ResourceVersion: s.Seen,
		Since:           at(s.Since), At: now, Event: s.Event, Webhooks: s.Webhooks,
	}
}

func (s *state) end(r *Rule, why EndReason, now time.Time) Alarm {
	alarm := s.alarm(r, now)
	alarm.Key, alarm.Ended, alarm.Reason = s.Key+"-ended", true, why
	return alarm
}

// nextLook spreads the looks at objects over time.
func nextLook(key string, now time.Time) int64 {
	sum := fnv.New32a()
	_, _ = sum.Write([]byte(key))
	spread := time.Duration(sum.Sum32()%1000) * lookEvery / 10_000
	return now.Add(lookEvery - spread).UnixNano()
}
