package status

import (
	"reflect"

	"github.com/slipway-dev/slipway/internal/redact"
)

// withoutSecrets returns a status in which no message, however deep, has a secret. It shares with the old one what has not changed:
// that may be a part of the cache.
func withoutSecrets[S any](status S) S {
	if cleaned, changed := cleanMessages(reflect.ValueOf(status)); changed {
		return cleaned.Interface().(S)
	}
	return status
}

// messageField is the name of each field with words for people.
const messageField = "Message"

func cleanMessages(v reflect.Value) (cleaned reflect.Value, changed bool) {
	switch v.Kind() {
	case reflect.Pointer:
		if v.IsNil() {
			return v, false
		}
		inner, changed := cleanMessages(v.Elem())
		if !changed {
			return v, false
		}
		to := reflect.New(v.Type().Elem())
		to.Elem().Set(inner)
		return to, true
	case reflect.Slice:
		return cleanItems(v)
	case reflect.Struct:
		return cleanFields(v)
	default:
		return v, false
	}
}

func cleanItems(v reflect.Value) (cleaned reflect.Value, changed bool) {
	for i := range v.Len() {
		item, itemChanged := cleanMessages(v.Index(i))
		if !itemChanged {
			continue
		}
		if !changed {
			cleaned, changed = reflect.MakeSlice(v.Type(), v.Len(), v.Len()), true
			reflect.Copy(cleaned, v)
		}
		cleaned.Index(i).Set(item)
	}
	if !changed {
		return v, false
	}
	return cleaned, true
}

func cleanFields(v reflect.Value) (cleaned reflect.Value, changed bool) {
	for i := range v.NumField() {
		field := v.Type().Field(i)
		if !field.IsExported() {
			continue
		}
		next, fieldChanged := v.Field(i), false
		if field.Name == messageField && next.Kind() == reflect.String {
			if text := redact.Clean(next.String()); text != next.String() {
				next, fieldChanged = reflect.ValueOf(text).Convert(next.Type()), true
			}
		} else {
			next, fieldChanged = cleanMessages(next)
		}
		if !fieldChanged {
			continue
		}
		if !changed {
			cleaned, changed = reflect.New(v.Type()).Elem(), true
			cleaned.Set(v)
		}
		cleaned.Field(i).Set(next)
	}
	if !changed {
		return v, false
	}
	return cleaned, true
}
