//go:build pagetest

package page

import (
	"encoding/json"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/chromedp/chromedp/kb"
)

// TestAxeFindsNothing tries every page, wide and narrow, light and dark, and the log-in.
func TestAxeFindsNothing(t *testing.T) {
	source, err := os.ReadFile(os.Getenv("AXE"))
	if err != nil {
		t.Fatal("AXE names the file of axe-core: ", err)
	}
	m := newMonitor(t)
	b := newTab(t, m)
	b.run(navigate(m))
	b.see(`form.login`)
	value[bool](b, string(source)+"; true")
	axe(b, "log-in")
	b.login(token)
	b.see(`.user`)
	for _, width := range []int64{1180, 400} {
		b.size(width, 900)
		for _, dark := range []bool{false, true} {
			b.dark(dark)
			for _, where := range everyPage() {
				b.show(where)
				b.until("it is all there", `document.querySelectorAll('main li, main td').length > 2`)
				value[bool](b, `document.querySelectorAll('details').forEach((e) => e.open = true), true`)
				if where == everyPage()[2] {
					b.click(`.change .compare`)
					b.see(`.sides`)
				}
				axe(b, fmt.Sprintf("%s at %d pixels, dark: %v", where, width, dark))
			}
		}
	}
}

func axe(b *tab, where string) {
	b.Helper()
	found := value[string](b, `axe.run(document, {resultTypes: ['violations', 'incomplete']}).then((r) => JSON.stringify({
		passes: r.passes.length, violations: r.violations.flatMap((v) => v.nodes.map((n) => v.id + ': ' + v.help + ': ' + n.html + ' ' + n.failureSummary))}))`)
	var result struct {
		Passes     int
		Violations []string
	}
	if err := json.Unmarshal([]byte(found), &result); err != nil {
		b.Fatal(err)
	}
	if result.Passes < 10 {
		b.Errorf("%s: only %d rules were tried", where, result.Passes)
	}
	for _, violation := range result.Violations {
		b.Errorf("%s: %s", where, violation)
	}
}

// TestAxeFindsSomething shows that the test above can fail.
func TestAxeFindsSomething(t *testing.T) {
	source, err := os.ReadFile(os.Getenv("AXE"))
	if err != nil {
		t.Fatal(err)
	}
	b := open(t, newMonitor(t), "#/rules")
	value[bool](b, string(source)+"; true")
	value[bool](b, `document.querySelector('main').append(document.createElement('img')), true`)
	found := value[string](b, `axe.run(document).then((r) => r.violations.map((v) => v.id).join(' '))`)
	if !strings.Contains(found, "image-alt") {
		t.Errorf("found %q", found)
	}
}

// TestNothingIsWiderThanTheScreen: what is wider than its place scrolls there.
func TestNothingIsWiderThanTheScreen(t *testing.T) {
	b := open(t, newMonitor(t), "#/overview")
	for _, width := range []int64{400, 700} {
		b.size(width, 800)
		for _, where := range everyPage() {
			b.show(where)
			b.until("it is all there", `document.querySelectorAll('main li, main td').length > 2`)
			value[bool](b, `document.querySelectorAll('details').forEach((e) => e.open = true), true`)
			wide := value[string](b, `[...document.querySelectorAll('body *')].filter((e) => e.checkVisibility() && !e.closest('.skip, .hidden, thead') &&
				e.getBoundingClientRect().right > innerWidth + 1 && !e.closest('.scroll')).map((e) => e.outerHTML.slice(0, 120)).slice(0, 3).join('\n')`)
			if wide != "" || value[int64](b, `document.documentElement.scrollWidth`) > width {
				t.Errorf("%s at %d pixels: %s", where, width, wide)
			}
		}
	}
}

func TestDark(t *testing.T) {
	b := open(t, newMonitor(t), "#/overview")
	lightness := `(() => { const [r, g, b] = getComputedStyle(document.body).backgroundColor.match(/\d+/g).map(Number); return r + g + b })()`
	if light := value[int](b, lightness); light < 600 {
		t.Errorf("in the light the page is dark: %d", light)
	}
	b.dark(true)
	if dark := value[int](b, lightness); dark > 150 {
		t.Errorf("in the dark the page is light: %d", dark)
	}
}

// TestKeyboard reaches everything that can be used, in the order of the page, and uses it.
func TestKeyboard(t *testing.T) {
	b := open(t, newMonitor(t), "#/overview")
	for _, where := range []string{"#/overview", "#/timeline", toObject(databases, "shop", "orders")} {
		b.show(where)
		b.until("it is all there", `document.querySelectorAll('main li, main td').length > 2`)
		value[bool](b, `document.activeElement.blur(), window.reached = new Set(), document.addEventListener('focusin', (e) => window.reached.add(e.target)), scrollTo(0, 0), true`)
		count := value[int](b, `[...document.querySelectorAll('a, button, input, select, summary, [tabindex="0"]')].filter((e) => e.checkVisibility()).length`)
		for range count + 2 {
			b.press(kb.Tab)
		}
		missed := value[string](b, `[...document.querySelectorAll('a, button, input, select, summary')].filter((e) => e.checkVisibility() && !window.reached.has(e)).map((e) => e.outerHTML).join('\n')`)
		if missed != "" {
			t.Errorf("%s: not reached: %s", where, missed)
		}
	}
	b.focus(`.skip`)
	b.press(kb.Enter)
	b.until("the content has the focus", `document.activeElement.id === 'main'`)
	b.focus(`nav li:nth-child(2) a`)
	b.press(kb.Enter)
	b.until("the new title has the focus", `document.activeElement.matches('h1') && document.activeElement.innerText === 'Timeline' && document.title.startsWith('Timeline')`)
	b.see(`.fields summary`)
	b.focus(`.fields summary`)
	b.press(kb.Enter)
	b.until("the change is open", `document.querySelector('.fields').open`)
	ring := value[string](b, `getComputedStyle(document.activeElement).outlineStyle`)
	if ring != "solid" {
		t.Errorf("where the focus is cannot be seen: %s", ring)
	}
}
