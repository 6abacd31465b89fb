// Two stream listeners in Node, as peers of ours: one of the packages everybody takes, and one tuned by
// hand. Answers each line on the standard input with microseconds a record, messages, and changed leaves.

import { readFileSync } from 'node:fs';
import { createInterface } from 'node:readline';
import { join } from 'node:path';
import { unmarshall } from '@aws-sdk/util-dynamodb';
import deepDiff from 'deep-diff';
import microdiff from 'microdiff';

const inputs = process.argv[2];
const read = (name) => readFileSync(join(inputs, name));
const rules = read('rules.txt').toString().trim().split('\n').map((rule) => new RegExp(rule));
const events = { '1k': read('event-1k.json'), '4k': read('event-4k.json') };

/** A message as ours: everything but old and new. */
const message = (record, number, key, old, changed, diff) => JSON.stringify({
  id: `${record.eventID}:rule-${number}`,
  registration: `rule-${number}`,
  key,
  operation: record.eventName,
  version: changed.version,
  previousVersion: old.version,
  timestamp: changed.timestamp,
  clientToken: changed.clientToken,
  diff,
});

/** As one writes it first. */
const plain = (bytes) => {
  const messages = [];
  let leaves = 0;
  for (const record of JSON.parse(bytes.toString()).Records) {
    // Numbers such as nanoseconds do not fit; without this, unmarshall refuses the item.
    const options = { wrapNumbers: (text) => Number(text) };
    const old = unmarshall(record.dynamodb.OldImage, options);
    const changed = unmarshall(record.dynamodb.NewImage, options);
    const key = `${changed.PK}#${changed.SK}`;
    const diff = deepDiff.diff(old.reported, changed.reported);
    leaves += diff.length;
    rules.forEach((rule, number) => {
      if (rule.test(key)) {
        messages.push(message(record, number, key, old, changed, diff));
      }
    });
  }
  return [messages.length, leaves];
};

const attribute = (value) => {
  if (value.M !== undefined) return attributes(value.M);
  if (value.N !== undefined) return +value.N;
  if (value.S !== undefined) return value.S;
  if (value.BOOL !== undefined) return value.BOOL;
  if (value.L !== undefined) return value.L.map(attribute);
  if (value.NULL !== undefined) return null;
  return value.SS ?? value.NS?.map(Number) ?? value.B ?? value.BS;
};

const attributes = (map) => {
  const object = {};
  for (const name in map) {
    object[name] = attribute(map[name]);
  }
  return object;
};

/** The same with what is known to be slow done by hand: keys are matched before anything is decoded. */
const tuned = (bytes) => {
  const messages = [];
  let leaves = 0;
  for (const record of JSON.parse(bytes.toString()).Records) {
    const { Keys, OldImage, NewImage } = record.dynamodb;
    const key = `${Keys.PK.S}#${Keys.SK.S}`;
    let decoded;
    for (let number = 0; number < rules.length; number += 1) {
      if (!rules[number].test(key)) continue;
      if (decoded === undefined) {
        const [old, changed] = [attributes(OldImage), attributes(NewImage)];
        const diff = microdiff(old.reported, changed.reported, { cyclesFix: false });
        leaves += diff.length;
        decoded = { old, changed, diff };
      }
      messages.push(message(record, number, key, decoded.old, decoded.changed, decoded.diff));
    }
  }
  return [messages.length, leaves];
};

const contests = { node: plain, 'node-tuned': tuned };

createInterface({ input: process.stdin }).on('line', (line) => {
  const [contest, shape] = line.split(' ');
  const run = contests[contest];
  if (run === undefined) {
    console.log('-');
    return;
  }
  const start = process.hrtime.bigint();
  const counts = run(events[shape]);
  const microseconds = Number(process.hrtime.bigint() - start) / 1e3 / 100;
  console.log(microseconds, ...counts);
});
