// Package cache keeps responses of backends in memory, as RFC 9111 has it for a shared cache, and gives them to requests that
// would have got the same.
//
// A response is only given to a request whose fields are those of the request that brought it. Of a few fields, with which every
// browser differs, the backend has to say by Vary that they matter. So what a client sends in any other field, such as a cookie,
// its credentials or X-Original-Url, never reaches another client by way of the cache.
//
//   - control.go reads Cache-Control, and other fields about time;
//   - key.go says which requests are the same;
//   - policy.go has what a route says of its cache (table.Cache);
//   - rules.go decides what may be kept, and what may be given to whom;
//   - store.go keeps responses within the room that there is;
//   - recording.go keeps a response while it comes.
package cache
