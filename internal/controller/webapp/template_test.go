package webapp

import (
	"encoding/json"
	"testing"
)

func TestAnObjectHoldsWhatWasStatedAboutIt(t *testing.T) {
	tests := map[string]struct {
		live, stated string
		want         bool
	}{
		"the same":                     {`{"a":{"b":[1,"x",true]}}`, `{"a":{"b":[1,"x",true]}}`, true},
		"more fields and items":        {`{"a":{"b":[1,2],"c":1},"d":1}`, `{"a":{"b":[1]}}`, true},
		"an empty text is left out":    {`{}`, `{"value":""}`, true},
		"another value":                {`{"a":1}`, `{"a":2}`, false},
		"another value deep down":      {`{"a":[{"b":false}]}`, `{"a":[{"b":true}]}`, false},
		"a field is missing":           {`{}`, `{"a":1}`, false},
		"an object is missing":         {`{}`, `{"a":{"b":1}}`, false},
		"an item is missing":           {`{"a":[1]}`, `{"a":[1,2]}`, false},
		"a list is missing":            {`{}`, `{"a":[1]}`, false},
		"a text in place of an object": {`{"a":"x"}`, `{"a":{"b":1}}`, false},
		"an object in place of a text": {`{"a":{}}`, `{"a":""}`, false},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			var live, stated any
			if err := json.Unmarshal([]byte(tc.live), &live); err != nil {
				t.Fatal(err)
			}
			if err := json.Unmarshal([]byte(tc.stated), &stated); err != nil {
				t.Fatal(err)
			}
			if got := holds(live, stated); got != tc.want {
				t.Errorf("%v", got)
			}
		})
	}
}
