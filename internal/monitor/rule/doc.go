// Package rule compiles MonitorRules and evaluates them: it says which alarms are raised, and which end.
//
// It is pure: no client, no clock, no logger, no I/O. The engine is told what happened to an object and when, or that time has
// passed, and returns what has to be stored, who has to be told, and which objects it has to see again.
//
//	compiler, err := rule.NewCompiler(rule.Limits{})
//	compiled, problems := compiler.Compile(&monitorRule)
//	changed := engine.SetRules([]*rule.Rule{compiled})
//	effects, err := engine.Observe(ctx, rule.Observation{Kind: kind, Records: records, Before: before, After: after, Time: now})
//
// # What is promised
//
// An alarm is raised once for what it is about, however often the same change is observed: its key is the same. What is stored
// with the records of a change is enough to go on after a crash: no time and no count is lost. A clock that is set back lets
// nothing fire early; one that is set forward lets it fire once.
//
// An object costs only the rules about its kind, and while nothing is the matter nothing is remembered of it.
//
// # Files
//
//	compiler.go    a rule from a MonitorRule: NewCompiler, Compile
//	expression.go  CEL: compiled, estimated, evaluated
//	rule.go        Rule, and the text of its alarms
//	set.go         rules by the kinds that they are about
//	problem.go     what is wrong with a rule
//	engine.go      Observe, Tick, Sweep and timers
//	look.go        one look at an object
//	variables.go   what expressions see of it
//	step.go        what follows: pending, firing, ended
//	count.go       changes and turns in a window
//	state.go       what is remembered, and how it is stored
//	shard.go       the states of a kind
//	status.go      how a rule does
//	alarm.go       Alarm
//	glob.go        patterns in which * stands for any text
//	text.go        texts that are safe to show
package rule
