// Command generate writes the generated part of the client from the OpenAPI document: `go generate` runs it.
package main

import (
	"bytes"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"log"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
)

type object = map[string]any

var methods = []string{"get", "post", "put", "patch", "delete"}

func must[T any](value T, err error) T {
	if err != nil {
		log.Fatal(err)
	}
	return value
}

func main() {
	// Tests may run it twice at the same time.
	lock := must(os.Open("generator.yaml"))
	must(0, syscall.Flock(int(lock.Fd()), syscall.LOCK_EX))
	client := must(filepath.Abs("../.."))
	document := filepath.Join(client, "../../openapi/openapi.json")
	mark := filepath.Join(client, "generated.sha256")
	state := digest(document, "main.go", "generator.yaml", "go.sum")
	if slices.Contains(os.Args, "--if-changed") {
		if last, err := os.ReadFile(mark); err == nil && string(last) == state {
			return
		}
	}
	var parsed object
	if err := json.Unmarshal(must(os.ReadFile(document)), &parsed); err != nil {
		log.Fatal(err)
	}
	operations := forGenerator(parsed)
	schemas := parsed["components"].(object)["schemas"].(object)
	nameMembers(parsed, schemas)
	folder := must(os.MkdirTemp("", "custos-"))
	defer os.RemoveAll(folder)
	source := filepath.Join(folder, "openapi.json")
	write(source, must(json.Marshal(parsed)))
	output := filepath.Join(client, "api.gen.go")
	generator := exec.Command("go", "tool", "oapi-codegen", "-config", "generator.yaml", "-o", output, source)
	generator.Stdout, generator.Stderr = os.Stdout, os.Stderr
	if err := generator.Run(); err != nil {
		log.Fatal(err)
	}
	write(output, refusingDots(must(os.ReadFile(output))))
	write(filepath.Join(client, "operations.gen.go"), []byte(operations))
	write(mark, []byte(state))
}

// forGenerator takes out of the document what the hand-written layer does: service headers, errors, webhooks. It
// returns the source of a table with the headers that each operation lists.
func forGenerator(document object) string {
	components := document["components"].(object)
	parameters := components["parameters"].(object)
	var rows []string
	for path, item := range document["paths"].(object) {
		for _, method := range methods {
			operation, isPresent := item.(object)[method].(object)
			if !isPresent {
				continue
			}
			var kept []any
			var accepted []string
			listed, _ := operation["parameters"].([]any)
			for _, each := range listed {
				parameter := each.(object)
				if reference, isReference := parameter["$ref"].(string); isReference {
					parameter = parameters[reference[strings.LastIndex(reference, "/")+1:]].(object)
				}
				name := parameter["name"].(string)
				if parameter["in"] != "header" {
					kept = append(kept, each)
				} else if name != "service-app-id" {
					accepted = append(accepted, strings.TrimPrefix(name, "service-"))
				}
			}
			slices.Sort(accepted)
			rows = append(rows, fmt.Sprintf("\t%q: {%s},", strings.ToUpper(method)+" "+path, quoted(accepted)))
			operation["parameters"] = kept
			maps.DeleteFunc(operation["responses"].(object), func(status string, _ any) bool { return status >= "300" })
			delete(operation, "security")
		}
	}
	delete(document, "webhooks")
	delete(document, "security")
	slices.Sort(rows)
	return "package custos\n\n// The service headers that each operation lists, without their prefix.\n" +
		"var operations = map[string][]string{\n" + strings.Join(rows, "\n") + "\n}\n"
}

// nameMembers makes the inline members of unions schemas that are named by their titles: the generator would number them.
func nameMembers(value any, schemas object) {
	switch inner := value.(type) {
	case []any:
		for _, each := range inner {
			nameMembers(each, schemas)
		}
	case object:
		for _, union := range []string{"anyOf", "oneOf"} {
			members, _ := inner[union].([]any)
			for index, each := range members {
				if title, hasTitle := each.(object)["title"].(string); hasTitle {
					schemas[title], members[index] = each, object{"$ref": "#/components/schemas/" + title}
				}
			}
		}
		for _, each := range inner {
			nameMembers(each, schemas)
		}
	}
}

// refusingDots has the generated functions refuse parameters of paths that would be resolved, such as `..`.
func refusingDots(source []byte) []byte {
	style := []byte(`runtime.StyleParamWithOptions("simple"`)
	if !bytes.Contains(source, style) {
		log.Fatal("no function with a parameter of the path was found")
	}
	return bytes.ReplaceAll(source, style, []byte(`stylePathParameter("simple"`))
}

func quoted(words []string) string {
	var texts []string
	for _, word := range words {
		texts = append(texts, fmt.Sprintf("%q", word))
	}
	return strings.Join(texts, ", ")
}

func digest(files ...string) string {
	hash := sha256.New()
	for _, file := range files {
		hash.Write(must(os.ReadFile(file)))
	}
	return fmt.Sprintf("%x", hash.Sum(nil))
}

func write(file string, content []byte) {
	if err := os.WriteFile(file, content, 0o644); err != nil {
		log.Fatal(err)
	}
}
