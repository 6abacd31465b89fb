// Merge and acknowledgement by godeviceshadow, as a peer of ours. Answers each line on the standard input with
// microseconds a pair of documents, and of how many pairs it makes the same as we do.
//
// Merges are asked for as ours are: the server is master. No loggers but where the contest is about them, since
// it is fastest without; ours reports every leaf at any time.
package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"time"

	"github.com/mariotoffia/godeviceshadow/loggers/changelogger"
	"github.com/mariotoffia/godeviceshadow/merge"
)

// contest is one kind of work on every pair of documents.
type contest struct {
	// prepare makes what is used up, before the clock starts.
	prepare func()
	// run does it for one pair.
	run func(pair int)
	// same is how many pairs come out as ours do.
	same int
}

func main() {
	inputs := os.Args[1]
	contests := map[string]contest{}
	add[smallHouse](contests, inputs, "1k")
	add[largeHouse](contests, inputs, "4k")

	lines := bufio.NewScanner(os.Stdin)
	for lines.Scan() {
		contest, known := contests[lines.Text()]
		if !known {
			fmt.Println("-")
			continue
		}
		contest.prepare()
		start := time.Now()
		for pair := range pairs {
			contest.run(pair)
		}
		took := time.Since(start)
		fmt.Println(float64(took.Nanoseconds())/1e3/pairs, contest.same)
	}
}

const pairs = 100

// add adds the contests on documents of one shape, and looks at what comes of each.
func add[House any](contests map[string]contest, inputs, shape string) {
	read := func(name string) [][]byte {
		text := must(os.ReadFile(filepath.Join(inputs, name+"-"+shape+".jsonl")))
		return bytes.Split(bytes.TrimSpace(text), []byte("\n"))
	}
	texts, targets := read("documents"), read("desired")
	merged, late, remaining := read("merged"), read("merged-late"), read("still-desired")
	houses, desired := decoded[House](texts), decoded[House](targets)
	var house House
	var text []byte

	mergeTo := func(old, new House, loggers ...*changelogger.ChangeMergeLogger) House {
		options := merge.MergeOptions{Mode: merge.ServerIsMaster}
		for _, logger := range loggers {
			options.Loggers = append(options.Loggers, logger)
		}
		return must(merge.Merge(old, new, options))
	}
	enter := func(name string, prepare func(), run func(pair int), outcome func() []byte, expected [][]byte) {
		prepare()
		same := 0
		for pair := range pairs {
			run(pair)
			if equal(outcome(), expected[pair]) {
				same++
			} else {
				fmt.Fprintf(os.Stderr, "%s %s: %s and not %s\n", name, shape, outcome(), expected[pair])
			}
		}
		contests[name+" "+shape] = contest{prepare, run, same}
	}
	nothing := func() {}
	encoded := func() []byte { return must(json.Marshal(house)) }

	enter("merge", nothing, func(pair int) {
		house = mergeTo(houses[2*pair], houses[2*pair+1])
	}, encoded, merged)
	// Only to see that what is late is kept out by both.
	enter("merge-late", nothing, func(pair int) {
		house = mergeTo(houses[2*pair+1], houses[2*pair])
	}, encoded, late)
	enter("merge-logged", nothing, func(pair int) {
		house = mergeTo(houses[2*pair], houses[2*pair+1], changelogger.New())
	}, encoded, merged)
	enter("merge-texts", nothing, func(pair int) {
		var old, new House
		check(json.Unmarshal(texts[2*pair], &old))
		check(json.Unmarshal(texts[2*pair+1], &new))
		text = must(json.Marshal(mergeTo(old, new)))
	}, func() []byte { return text }, merged)
	// What is desired is changed in its place, so every turn needs its own.
	enter("acknowledge", func() { desired = decoded[House](targets) }, func(pair int) {
		house = must(merge.Desired(houses[2*pair+1], desired[pair], merge.DesiredOptions{}))
	}, encoded, remaining)
}

func decoded[House any](texts [][]byte) []House {
	houses := make([]House, len(texts))
	for number, text := range texts {
		check(json.Unmarshal(text, &houses[number]))
	}
	return houses
}

// equal is whether two texts are the same value.
func equal(a, b []byte) bool {
	var values [2]any
	for number, text := range [][]byte{a, b} {
		decoder := json.NewDecoder(strings.NewReader(string(text)))
		decoder.UseNumber()
		check(decoder.Decode(&values[number]))
	}
	return reflect.DeepEqual(values[0], values[1])
}

func must[T any](value T, err error) T {
	check(err)
	return value
}

func check(err error) {
	if err != nil {
		panic(err)
	}
}
