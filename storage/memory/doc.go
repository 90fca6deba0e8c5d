// Package memory is the storage engine that keeps everything in the memory of
// the process, and the lookup side of the embedded engine.
//
// A binding is a few dozen bytes in an arena: what is particular to it in
// binary form, and the number of an interned profile for what it shares with
// the other sessions of its PCF. An index maps the hash of each lookup key to
// places in the arena. Neither holds a pointer that the garbage collector
// would follow, so tens of millions of bindings cost it nothing.
//
// A change is planned against the current state (Plan…) and then applied
// (Apply). Between the two, the embedded engine makes the change
// durable. Readers only lock the shard of the key that they look up. A change
// locks all shards that it touches, so that no reader sees half of it.
package memory
