// A stream listener in Go, as a peer of ours: the events of aws-lambda-go, encoding/json, regexp, and a
// diff by hand. Answers each line on the standard input with microseconds a record, messages, and changed
// leaves.
package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"strings"
	"time"

	"github.com/aws/aws-lambda-go/events"
)

const records = 100

type leaf struct {
	Path string `json:"path"`
	Old  any    `json:"old"`
	New  any    `json:"new"`
}

type message struct {
	ID              string `json:"id"`
	Registration    string `json:"registration"`
	Key             string `json:"key"`
	Operation       string `json:"operation"`
	Version         any    `json:"version"`
	PreviousVersion any    `json:"previousVersion"`
	Timestamp       any    `json:"timestamp"`
	ClientToken     any    `json:"clientToken"`
	Diff            []leaf `json:"diff"`
}

func main() {
	inputs := os.Args[1]
	read := func(name string) []byte {
		bytes, err := os.ReadFile(filepath.Join(inputs, name))
		if err != nil {
			panic(err)
		}
		return bytes
	}
	var rules []*regexp.Regexp
	for _, rule := range strings.Fields(strings.ReplaceAll(string(read("rules.txt")), " ", "\x00")) {
		rules = append(rules, regexp.MustCompile(strings.ReplaceAll(rule, "\x00", " ")))
	}
	streams := map[string][]byte{"1k": read("event-1k.json"), "4k": read("event-4k.json")}

	lines := bufio.NewScanner(os.Stdin)
	for lines.Scan() {
		contest, shape, _ := strings.Cut(lines.Text(), " ")
		if contest != "go" {
			fmt.Println("-")
			continue
		}
		start := time.Now()
		messages, leaves := listen(streams[shape], rules)
		took := time.Since(start)
		fmt.Println(float64(took.Nanoseconds())/1e3/records, messages, leaves)
	}
}

func listen(bytes []byte, rules []*regexp.Regexp) (int, int) {
	var event events.DynamoDBEvent
	if err := json.Unmarshal(bytes, &event); err != nil {
		panic(err)
	}
	var messages [][]byte
	leaves := 0
	for _, record := range event.Records {
		before, after := plain(record.Change.OldImage), plain(record.Change.NewImage)
		key := after["PK"].(string) + "#" + after["SK"].(string)
		diff := changed(nil, "", before["reported"], after["reported"])
		leaves += len(diff)
		for number, rule := range rules {
			if !rule.MatchString(key) {
				continue
			}
			text, err := json.Marshal(message{
				ID:              fmt.Sprintf("%s:rule-%d", record.EventID, number),
				Registration:    fmt.Sprintf("rule-%d", number),
				Key:             key,
				Operation:       record.EventName,
				Version:         after["version"],
				PreviousVersion: before["version"],
				Timestamp:       after["timestamp"],
				ClientToken:     after["clientToken"],
				Diff:            diff,
			})
			if err != nil {
				panic(err)
			}
			messages = append(messages, text)
		}
	}
	return len(messages), leaves
}

func plain(item map[string]events.DynamoDBAttributeValue) map[string]any {
	values := make(map[string]any, len(item))
	for name, value := range item {
		values[name] = scalar(value)
	}
	return values
}

func scalar(value events.DynamoDBAttributeValue) any {
	switch value.DataType() {
	case events.DataTypeMap:
		return plain(value.Map())
	case events.DataTypeList:
		list := make([]any, 0, len(value.List()))
		for _, element := range value.List() {
			list = append(list, scalar(element))
		}
		return list
	case events.DataTypeNumber:
		return json.Number(value.Number())
	case events.DataTypeString:
		return value.String()
	case events.DataTypeBoolean:
		return value.Boolean()
	default:
		return nil
	}
}

// changed appends every leaf that is another one, came or went.
func changed(found []leaf, path string, before, after any) []leaf {
	old, isMap := before.(map[string]any)
	if new, both := after.(map[string]any); isMap && both {
		for name, value := range old {
			found = changed(found, path+"/"+name, value, new[name])
		}
		for name, value := range new {
			if _, known := old[name]; !known {
				found = append(found, leaf{path + "/" + name, nil, value})
			}
		}
		return found
	}
	if !reflect.DeepEqual(before, after) {
		found = append(found, leaf{path, before, after})
	}
	return found
}
