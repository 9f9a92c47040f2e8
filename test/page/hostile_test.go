//go:build pagetest

package page

import (
	"fmt"
	"strings"
	"testing"
)

// TestHostileTextsStayText looks at an object whose name, fields, actor and conditions are scripts, on every page that shows it. That
// none ran, and none was tried, is what every test looks for in the end.
func TestHostileTextsStayText(t *testing.T) {
	b := open(t, newMonitor(t), "#/overview")
	own := value[int](b, `document.querySelectorAll('script, style, link').length`)
	for _, where := range []string{"#/overview", "#/timeline?namespace=hostile", toObject(backups, "hostile", hostileName), "#/kind?name=backups.slipway.dev"} {
		b.show(where)
		b.reads(hostileName)
		value[bool](b, `document.querySelectorAll('details').forEach((e) => e.open = true), true`)
		for _, selector := range []string{"iframe", "object", "embed", "main img", "main [onload], main [onerror], main [onmouseover]", `a[href^="javascript"]`, "main script", "main style", "main [style*=display]"} {
			if n := value[int](b, fmt.Sprintf("document.querySelectorAll(%q).length", selector)); n > 0 {
				t.Errorf("%s has %d of %s", where, n, selector)
			}
		}
		if n := value[int](b, `document.querySelectorAll('script, style, link').length`); n != own {
			t.Errorf("%s has %d scripts and styles, %d are its own", where, n, own)
		}
	}
	b.show(toObject(backups, "hostile", hostileName))
	b.see(`.yaml`)
	yaml := value[string](b, `document.querySelector('.yaml').textContent`)
	for _, text := range hostile[:7] {
		if !strings.Contains(yaml, strings.ReplaceAll(text, `"`, `\"`)) {
			t.Errorf("%q is not shown as it is", text)
		}
	}
	if strings.ContainsAny(yaml, "\u202e\u2066") || !strings.Contains(yaml, `\u202e`) {
		t.Error("a character that turns the writing around is not written out")
	}
	b.click(`.change .compare`)
	b.see(`.sides`)
	b.reads(hostile[0])
}

// TestThePolicyHolds tries what a script that got in would do. Each is refused, or the tests of this package prove nothing.
func TestThePolicyHolds(t *testing.T) {
	b := open(t, newMonitor(t), "#/rules")
	for what, script := range map[string]string{
		"an inline script":       `(() => { const s = document.createElement('script'); try { s.textContent = 'window.ran = 1' } catch { return true } document.head.append(s); return window.ran !== 1 })()`,
		"text as HTML":           `(() => { try { document.querySelector('main').innerHTML = '<b>x</b>'; return false } catch { return true } })()`,
		"a request to elsewhere": `fetch('https://example.com/').then(() => false, () => true)`,
		"a frame":                `(() => { const f = document.createElement('iframe'); f.src = location.href; document.body.append(f); try { return f.contentDocument?.body?.children.length !== 1 } finally { f.remove() } })()`,
		"an inline style":        `(() => { const s = document.createElement('style'); s.textContent = 'h1 { color: rgb(1, 2, 3) }'; document.head.append(s); return getComputedStyle(document.querySelector('h1')).color !== 'rgb(1, 2, 3)' })()`,
	} {
		if !value[bool](b, script) {
			t.Errorf("%s is not refused", what)
		}
	}
	b.until("the refusals were seen", `window.refused.length >= 4`)
	b.forgive()
}
