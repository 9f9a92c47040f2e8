//go:build pagetest

package page

import (
	"fmt"
	"net/url"
	"testing"
	"time"

	"github.com/slipway-dev/slipway/internal/monitor/change"
)

func toObject(of change.Kind, namespace, name string) string {
	params := url.Values{"kind": {of.GroupResource().String()}, "namespace": {namespace}, "name": {name}}
	return "#/object?" + params.Encode()
}

func TestLogin(t *testing.T) {
	m := newMonitor(t)
	b := open(t, m, "#/overview")
	if script := value[string](b, `document.cookie`); script != "" {
		t.Errorf("a script reads the cookie: %s", script)
	}
	b.reads("Objects by health")
	b.click(`.user button`)
	b.login("another-token")
	b.reads("The cluster does not accept this token")
	b.login(token)
	b.reads("Objects by health")
}

func TestOverview(t *testing.T) {
	b := open(t, newMonitor(t), "#/overview")
	b.reads("This view is not complete: 1 kind is not covered.")
	b.click(`.age summary`)
	b.reads("certificates.certs.example.com since 9 min ago: the monitor may not list it")
	b.until("one object has failed", `[...document.querySelectorAll('.counts div')].some((e) => e.innerText.replace(/\s+/g, ' ').trim() === 'Failed 1')`)
	b.reads("changes in the last day; at most")
	b.until("the chart is drawn", `(() => { const c = document.querySelector('.chart canvas'); return c !== null &&
		c.getContext('2d').getImageData(0, 0, c.width, c.height).data.some((x) => x > 0) })()`)
	b.click(`.choice button:first-child`)
	b.reads("in the last hour")
	b.reads("Failed for 5 minutes: ImagePullBackOff")
	b.reads("container app: the image registry.example.com/checkout:2.1.0-rc1 does not exist")
	b.reads("databasereplicas.data.example.com 2")
	b.reads("Refused the monitor may not list it")
}

func TestTimelineIsFilteredAndLive(t *testing.T) {
	m := newMonitor(t)
	b := open(t, m, "#/timeline")
	b.reads("Live: new changes appear by themselves.")
	b.reads("Changes since")
	for i := range 3 {
		o := shop(fmt.Sprintf("new-%d", i), "1.0.0", 1)
		m.put(o, change.Created, 0, "kubectl-create")
	}
	b.reads("3 new changes.")
	b.until("the newest is above", `document.querySelector('.changes .change').innerText.includes('new-2')`)
	b.click(`.live button`)
	b.reads("Paused: new changes do not appear.")
	m.put(shop("while-paused", "1.0.0", 1), change.Created, 0, "kubectl-create")
	b.click(`.live button`)
	b.reads("while-paused")
	b.until("nothing is there twice", `(() => { const all = [...document.querySelectorAll('.changes .change')].map((e) => e.innerText);
		return new Set(all).size === all.length })()`)

	b.focus(`input[name=kind]`)
	b.press("webapps.slipway.dev")
	b.focus(`input[name=actor]`)
	b.press("kubectl-edit\r")
	b.until("only one change is left", `document.querySelectorAll('.changes .change').length === 1`)
	b.click(`.fields summary`)
	b.reads(`.spec.env.LOG_LEVEL changed "info" "debug"`)
	m.put(shop("filtered-out", "1.0.0", 1), change.Created, 0, "somebody-else")
	checkout := shop("checkout", "2.1.0", 2)
	m.put(checkout, change.Updated, 0, "kubectl-edit", changed(".spec.replicas", 2, 4))
	b.until("what fits comes, and nothing else", `document.querySelectorAll('.changes .change').length === 2`)
	if value[bool](b, `document.body.innerText.includes('filtered-out')`) {
		t.Error("a change that does not fit is shown")
	}
	b.show("#/timeline?type=Deleted")
	b.until("the one deletion is shown", `document.querySelectorAll('.changes .change').length === 1`)
	b.reads("Database test/scratch nobody knows by whom")
	b.show("#/timeline?namespace=shop")
	b.click(`main > p > button`)
	b.reads("Baseline")
}

func TestObject(t *testing.T) {
	m := newMonitor(t)
	b := open(t, m, toObject(webapps, "shop", "checkout"))
	b.reads("Progressing ImagePullBackOff: container app")
	b.reads("Ready False ImagePullBackOff")
	b.until("the content is shown as YAML", `document.querySelector('.yaml').innerText.includes('spec:\n  env:\n    LOG_LEVEL: debug\n    PAYMENT_URL: "https://pay.example.com"')`)
	b.click(`.change:nth-child(2) .compare`)
	b.until("what was removed is on the left, what came on the right", `(() => { const rows = [...document.querySelectorAll('.sides tr.changed')].map((e) => [...e.querySelectorAll('td.text')].map((c) => c.innerText));
		return rows.some((r) => r[0].includes('LOG_LEVEL: info') && r[1].includes('LOG_LEVEL: debug')) })()`)
	b.until("an added line has nothing beside it", `[...document.querySelectorAll('.sides tr.added')].some((e) => e.querySelector('td.empty') && e.innerText.includes('PAYMENT_URL'))`)
	b.click(`.links a`)
	b.reads("As it was at")
	b.until("the content is that of then", `document.querySelector('.yaml').innerText.includes('reason: Available')`)

	b.show(toObject(databases, "test", "scratch"))
	b.reads("It does not exist any more: deleted")
	b.show(toObject(databases, "test", "never"))
	b.until("it is said that there is none", `document.querySelector('main [role=alert]') !== null`)
}

func TestTree(t *testing.T) {
	b := open(t, newMonitor(t), toObject(replicas, "shop", "orders-reader"))
	b.until("the owner is above, the child below", `(() => { const t = document.querySelector('.tree'); return t !== null &&
		/Database shop\/orders\s+Healthy[^]*orders-reader\s+Healthy this object[^]*Backup shop\/orders-nightly\s+Healthy/.test(t.innerText) })()`)
	b.show(toObject(databases, "shop", "orders"))
	b.until("both children are shown", `document.querySelectorAll('.tree details').length === 2`)
	b.click(`.tree details summary`)
	b.reads("Backup shop/orders-nightly")
}

func TestKind(t *testing.T) {
	b := open(t, newMonitor(t), "#/kind?name=databases.data.example.com")
	b.reads("v1 yes yes no")
	b.reads("Generation 2 breaks in 4 places")
	b.reads("version v1beta1 is gone")
	b.reads("Breaking the field is required now, without a default v1 .spec.engine")
	b.reads("1 cannot be written any more, 1 break on the next edit of a field, 0 could not be checked, 2 are fine")
	b.reads("Breaks shop/orders Required value .spec.engine and 1 other problem")
	b.reads("Generation 1 the oldest that is kept")
	b.reads("Database shop/orders Healthy")
	b.show("#/kind?name=webapps.slipway.dev")
	b.reads("No version of its definition is kept")
}

func TestRules(t *testing.T) {
	b := open(t, newMonitor(t), "#/rules")
	b.reads("Critical unhealthy shop/checkout Failed for 5 minutes: ImagePullBackOff 7 min ago")
	b.reads("deletion-stuck Warning an object has been deleted for 10 minutes and is still there 0")
	b.reads("when: undeclared reference to 'objekt'")
	b.show("#/nowhere")
	b.reads("There is no such page")
}

// TestEveryPageSaysHowOldItIs: also when the monitor has stopped answering, and then the age grows.
func TestEveryPageSaysHowOldItIs(t *testing.T) {
	m := newMonitor(t)
	b := open(t, m, "#/overview")
	for _, where := range everyPage() {
		b.show(where)
		b.until(where+" says how old it is", `/This view is (\d|not complete)/.test(document.querySelector('.age')?.innerText ?? '')`)
	}
	b.show("#/kind?name=databases.data.example.com")
	start := time.Now()
	b.until("its age grows", `Number(/This view is (\d+) s old/.exec(document.querySelector('.age').innerText)?.[1] ?? 0) >= 2`)
	if time.Since(start) < time.Second {
		t.Error("the age is not that of the answer")
	}
}

func everyPage() []string {
	return []string{
		"#/overview", "#/timeline", toObject(webapps, "shop", "checkout"), toObject(databases, "shop", "orders"),
		"#/kind?name=databases.data.example.com", "#/rules", toObject(backups, "hostile", hostileName),
	}
}
