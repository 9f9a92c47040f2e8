package health

import (
	"slices"
	"time"
)

// Shipped are the profiles that Slipway brings.
func Shipped() *Profiles { return shipped }

var shipped = mustProfiles(slices.Concat(
	workloadProfiles(), clusterProfiles(), slipwayProfiles(), certManagerProfiles(), fluxProfiles(), argoProfiles(), crossplaneProfiles(),
	gatewayAPIProfiles(), databaseProfiles(), knativeProfiles(), clusterAPIProfiles(), veleroProfiles(), secretProfiles(),
	prometheusProfiles(), tektonProfiles(), wordProfiles(), furtherProfiles(), kruiseProfiles(),
))

// mustProfiles is NewProfiles for a list that is part of the program, so that a mistake in it fails every test.
func mustProfiles(list []Profile) *Profiles {
	profiles, err := NewProfiles(list)
	if err != nil {
		panic(err)
	}
	return profiles
}

// The following write tests as they read in a table.

func is(field string, values ...string) Test    { return Test{Field: field, In: values} }
func isNot(field string, values ...string) Test { return Test{Field: field, NotIn: values} }
func isSet(field string) Test                   { return Test{Field: field} }
func isUnset(field string) Test                 { return Test{Field: field, Unset: true} }

// covers tests that a number is not less than another, which is otherwise if nothing says it.
func covers(field, wanted string, otherwise int64) Test {
	return Test{Field: field, Covers: wanted, Default: otherwise}
}

// status tests the status of one of the object's own conditions.
func status(conditionType string, values ...string) Test {
	return is(conditionField(conditionType, "status"), values...)
}

// reason tests the reason of one of the object's own conditions.
func reason(conditionType string, values ...string) Test {
	return is(conditionField(conditionType, "reason"), values...)
}

func when(tests ...Test) []Test { return tests }

// The following make rules. The reason and the message are those beside the field.

func healthyWhen(tests ...Test) Rule     { return Rule{When: tests, State: Healthy} }
func failedWhen(tests ...Test) Rule      { return Rule{When: tests, State: Failed} }
func progressingWhen(tests ...Test) Rule { return Rule{When: tests, State: Progressing} }

// lateWhen makes a rule of a condition that is a failure after some time.
func lateWhen(patience time.Duration, tests ...Test) Rule {
	return Rule{When: tests, State: Failed, Patience: patience}
}

// annotated tests an annotation.
func annotated(name string, values ...string) Test {
	return is(`.metadata.annotations["`+name+`"]`, values...)
}
