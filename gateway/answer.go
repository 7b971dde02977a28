package gateway

import (
	"encoding/json"
	"net/http"
	"reflect"
)

// answer sends v, or the error, as one JSON object.
func answer(w http.ResponseWriter, v any, err error) {
	if err != nil {
		refuse(w, http.StatusServiceUnavailable, err)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(Filled(v)) // a client that went away needs no answer
}

// refuse says why there is no answer.
func refuse(w http.ResponseWriter, code int, err error) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(code)
	_ = json.NewEncoder(w).Encode(map[string]string{"error": err.Error()})
}

// Filled returns v with an empty list or mapping in the place of every nil one,
// behind pointers in v itself: JSON that a program reads has no null for a list.
func Filled(v any) any {
	filled := reflect.New(reflect.TypeOf(v)).Elem()
	filled.Set(reflect.ValueOf(v))
	fillLists(filled)
	return filled.Interface()
}

// fillLists puts an empty list or mapping in the place of every nil one.
func fillLists(v reflect.Value) {
	switch v.Kind() {
	case reflect.Pointer:
		if !v.IsNil() {
			fillLists(v.Elem())
		}
	case reflect.Struct:
		for i := range v.NumField() {
			if f := v.Field(i); f.CanSet() {
				fillLists(f)
			}
		}
	case reflect.Slice:
		if v.Type().Elem().Kind() == reflect.Uint8 {
			return // bytes are no list, and a json.RawMessage may be null
		}
		if v.IsNil() {
			v.Set(reflect.MakeSlice(v.Type(), 0, 0))
		}
		for i := range v.Len() {
			fillLists(v.Index(i))
		}
	case reflect.Map:
		if v.IsNil() {
			v.Set(reflect.MakeMap(v.Type()))
		}
	}
}
