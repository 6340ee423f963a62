package main

import (
	"encoding/json"
	"log"
	"strconv"
	"strings"
	"time"
)

type object = map[string]any

func must[T any](value T, err error) T {
	if err != nil {
		log.Fatal(err)
	}
	return value
}

func parse(text []byte) (value any) {
	if len(text) > 0 {
		must(0, json.Unmarshal(text, &value))
	}
	return value
}

// or returns a member of the object, or the default where it is absent.
func or[T any](from object, name string, otherwise T) T {
	if value, isPresent := from[name].(T); isPresent {
		return value
	}
	return otherwise
}

func milliseconds(from object, name string) time.Duration {
	return time.Duration(or(from, name, 0.0)) * time.Millisecond
}

func listOf(from object, name string) (texts []string) {
	for _, each := range or(from, name, []any{}) {
		texts = append(texts, each.(string))
	}
	return texts
}

// at returns the value at a JSON pointer, nil if there is none.
func at(value any, pointer string) any {
	for _, name := range strings.Split(pointer, "/")[1:] {
		if list, isList := value.([]any); isList {
			index, err := strconv.Atoi(name)
			if err != nil || index >= len(list) {
				return nil
			}
			value = list[index]
			continue
		}
		members, _ := value.(object)
		value = members[strings.NewReplacer("~1", "/", "~0", "~").Replace(name)]
	}
	return value
}
