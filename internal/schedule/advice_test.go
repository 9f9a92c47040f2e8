package schedule

import (
	"strings"
	"testing"
	"time"
)

func TestAdviceTellsWhatAnAuthorMayNotHaveMeant(t *testing.T) {
	const close, once, anew, either = "so close together", "fires once in each", "begins anew in each", "on the ones and on the others"
	for expression, want := range map[string][]string{
		"0 2 * * *":       nil,
		"@hourly":         nil,
		"*/15 * * * *":    nil,
		"*/30 */6 * * *":  nil,
		"0 2 * * 1-5":     nil,
		"0 2 1,15 * *":    nil,
		"*/14 * * * *":    {close, anew},
		"0,5 2 * * *":     {close},
		"58 1,2 * * *":    nil,
		"59,0 * * * *":    {close},
		"*/61 * * * *":    {once},
		"*/45 * * * *":    {anew},
		"0 */25 * * *":    {once},
		"0 */24 * * *":    nil,
		"0 */7 * * *":     {anew},
		"0 2 */2 * *":     {anew},
		"0 2 */31 * *":    {once},
		"0 2 * */5 *":     {anew},
		"0 2 * * */2":     {anew},
		"0 2 1 * 1":       {either},
		"*/1 2 * * *":     {close},
		" 0  2   * * *  ": nil,
	} {
		t.Run(expression, func(t *testing.T) {
			s, err := Parse(expression, "Europe/Berlin")
			if err != nil {
				t.Fatal(err)
			}
			// In the middle of the slots: the next two are not the close ones.
			got := s.Advice(expression, time.Date(2026, 3, 5, 2, 2, 0, 0, time.UTC))
			if len(got) != len(want) {
				t.Fatalf("got %q, want one for each of %q", got, want)
			}
			for i := range want {
				if !strings.Contains(got[i], want[i]) {
					t.Errorf("got %q, want one that says %q", got[i], want[i])
				}
			}
		})
	}
}

// A field that fires evenly has one pause between all its values, and advice about it would only teach to overlook advice.
func TestAdviceAboutAStepIsTrue(t *testing.T) {
	for index, field := range cronFields {
		if field.values == 31 {
			continue // months differ
		}
		for step := 1; step < 2*field.values; step++ {
			text := "*/" + string(rune('0'+step/100)) + string(rune('0'+step/10%10)) + string(rune('0'+step%10))
			pauses := map[int]bool{}
			last := -1
			for value := range 3 * field.values {
				if value%field.values%step != 0 {
					continue
				}
				if last >= 0 {
					pauses[value-last] = true
				}
				last = value
			}
			seems := len(pauses) == 1 && pauses[step]
			if told := uneven(index, text) != ""; told == seems && step > 1 {
				t.Errorf("%s %s: the pauses are %v, and the advice is %q", field.name, text, pauses, uneven(index, text))
			}
		}
	}
}
