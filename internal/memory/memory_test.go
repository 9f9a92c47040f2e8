package memory

import "testing"

func TestTheLimitIsANumberOfBytesOrMax(t *testing.T) {
	tests := map[string]struct {
		text    string
		want    int64
		invalid bool
	}{
		"a limit":       {text: "100000000\n", want: 100000000},
		"no limit":      {text: "max\n"},
		"nothing":       {text: "", invalid: true},
		"not a number":  {text: "64Mi\n", invalid: true},
		"a limit below": {text: "-1\n", invalid: true},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			got, err := parse(test.text)
			if got != test.want || (err != nil) != test.invalid {
				t.Errorf("got %d, %v; want %d, an error: %t", got, err, test.want, test.invalid)
			}
		})
	}
}
