package main

import "time"

// The documents as models, in the way that is fastest of those its README shows: a struct with a pointer to
// every sensor, so that all names are known when it is compiled, and times as the numbers they are in the
// text. With maps by name, as for sensors that come and go, it takes twice as long.

type small struct {
	T int64 `json:"t"`
	V int64 `json:"v"`
}

func (s *small) GetTimestamp() time.Time { return time.Unix(s.T, 0) }
func (s *small) GetValue() any           { return s.V }

// IsZero is whether it was acknowledged: a pointer to nothing but zeros is left, and not to be written.
func (s *small) IsZero() bool { return *s == small{} }

type large struct {
	High      int64   `json:"high"`
	Low       int64   `json:"low"`
	Timestamp int64   `json:"timestamp"`
	Unit      string  `json:"unit"`
	Value     float64 `json:"value"`
}

func (l *large) GetTimestamp() time.Time { return time.UnixMilli(l.Timestamp) }
func (l *large) IsZero() bool            { return *l == large{} }

func (l *large) GetValue() any {
	return map[string]any{"high": l.High, "low": l.Low, "unit": l.Unit, "value": l.Value}
}

type smallRoom struct {
	S0 *small `json:"0,omitzero"`
	S1 *small `json:"1,omitzero"`
	S2 *small `json:"2,omitzero"`
	S3 *small `json:"3,omitzero"`
	S4 *small `json:"4,omitzero"`
	S5 *small `json:"5,omitzero"`
	S6 *small `json:"6,omitzero"`
	S7 *small `json:"7,omitzero"`
	S8 *small `json:"8,omitzero"`
	S9 *small `json:"9,omitzero"`
}

type smallHouse struct {
	Room0 *smallRoom `json:"room0"`
	Room1 *smallRoom `json:"room1"`
	Room2 *smallRoom `json:"room2"`
	Room3 *smallRoom `json:"room3"`
	Room4 *smallRoom `json:"room4"`
}

type largeRoom struct {
	S0 *large `json:"sensor-0,omitzero"`
	S1 *large `json:"sensor-1,omitzero"`
	S2 *large `json:"sensor-2,omitzero"`
	S3 *large `json:"sensor-3,omitzero"`
	S4 *large `json:"sensor-4,omitzero"`
	S5 *large `json:"sensor-5,omitzero"`
	S6 *large `json:"sensor-6,omitzero"`
	S7 *large `json:"sensor-7,omitzero"`
	S8 *large `json:"sensor-8,omitzero"`
	S9 *large `json:"sensor-9,omitzero"`
}

type largeHouse struct {
	Room0 *largeRoom `json:"room0"`
	Room1 *largeRoom `json:"room1"`
	Room2 *largeRoom `json:"room2"`
	Room3 *largeRoom `json:"room3"`
	Room4 *largeRoom `json:"room4"`
}
