package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/slipway-dev/slipway/internal/health"
)

func TestThePageNamesEveryProfileAndType(t *testing.T) {
	content, err := render()
	if err != nil {
		t.Fatal(err)
	}
	var want []string
	for _, class := range health.Polarity() {
		want = append(want, class.Types...)
	}
	for _, profile := range health.Shipped().List() {
		want = append(want, profile.Name())
	}
	for _, word := range want {
		if !strings.Contains(string(content), word) {
			t.Errorf("the page does not name %s", word)
		}
	}
}

func TestThePageInDocsIsUpToDate(t *testing.T) {
	content, err := render()
	if err != nil {
		t.Fatal(err)
	}
	got, err := os.ReadFile(filepath.Join("..", "..", "docs", "health.md"))
	if err != nil {
		t.Fatal(err)
	}
	if string(got) != string(content) {
		t.Error("docs/health.md is not what the tables say: run make generate")
	}
}
