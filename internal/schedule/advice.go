package schedule

import (
	"fmt"
	"strconv"
	"strings"
	"time"
)

// Often is how close two slots may be before Advice says so.
const Often = 15 * time.Minute

// looks is how many slots Advice compares: those of a day that fires every quarter of an hour.
const looks = 96

// cronFields are the fields of a cron expression, with how many values each has. The days of a month are none of a fixed number.
var cronFields = []struct {
	name, one string
	values    int
}{
	{"minute", "hour", 60},
	{"hour", "day", 24},
	{"day of the month", "month", 31},
	{"month", "year", 12},
	{"day of the week", "week", 7},
}

// Advice says in sentences what of a schedule may not be what its author meant. expression is what the schedule was parsed
// from. It depends on the time only in that the slots after it are compared.
func (s Schedule) Advice(expression string, after time.Time) []string {
	var advice []string
	if first, second, close := s.closest(after); close {
		advice = append(advice, fmt.Sprintf("%q fires at %s and again at %s: runs that are so close together may not end in time",
			expression, first.Format("15:04"), second.Format("15:04 MST")))
	}
	fields := strings.Fields(expression)
	if len(fields) != len(cronFields) {
		return advice // a name such as @daily
	}
	for i, text := range fields {
		if sentence := uneven(i, text); sentence != "" {
			advice = append(advice, sentence)
		}
	}
	if s.days&starBit == 0 && s.weekdays&starBit == 0 {
		advice = append(advice,
			fmt.Sprintf("%q names days of the month and days of the week: it fires on the ones and on the others", expression))
	}
	return advice
}

// closest returns the first two of the next slots that are closer than Often.
func (s Schedule) closest(after time.Time) (first, second time.Time, found bool) {
	first = s.Next(after)
	for range looks {
		// Where the clock is changed in between, they are close on that day alone.
		if second = s.Next(first); second.Sub(first) < Often && sameOffset(first, second) {
			return first, second, true
		}
		first = second
	}
	return first, second, false
}

func sameOffset(a, b time.Time) bool {
	_, before := a.Zone()
	_, after := b.Zone()
	return before == after
}

// uneven says what a step such as */61 means where it is not what it seems to say: a step begins anew in each hour, day and so
// on. It is empty where there is no such step.
func uneven(index int, text string) string {
	field := cronFields[index]
	rest, found := strings.CutPrefix(text, "*/")
	step, err := strconv.Atoi(rest)
	switch {
	case !found || err != nil || step < 2:
		return ""
	case step > field.values, step == field.values && field.values == 31:
		return fmt.Sprintf("%q fires once in each %s, because the field %s has only %d values", text, field.one, field.name, field.values)
	case field.values%step != 0 || field.values == 31:
		return fmt.Sprintf("%q begins anew in each %s: the last pause of a %s is shorter than the others", text, field.one, field.one)
	default:
		return ""
	}
}
