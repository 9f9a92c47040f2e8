-- The requests that wrk sends: one for each route, in random order. BENCH_PATHS has the host and path of each.
local requests = {}

function init()
  for line in io.lines(os.getenv("BENCH_PATHS")) do
    local host, path = line:match("(%S+) (%S+)")
    requests[#requests + 1] = wrk.format("GET", path, {
      Host = host, ["X-Api-Key"] = os.getenv("BENCH_KEY"), ["User-Agent"] = "bench/1.0", Accept = "*/*",
    })
  end
end

function request()
  return requests[math.random(#requests)]
end

function done(summary, latency)
  local e = summary.errors
  io.write(string.format('{"requests":%d,"micros":%d,"errors":%d,"p50":%d,"p99":%d}\n', summary.requests, summary.duration,
    e.connect + e.read + e.write + e.status + e.timeout, latency:percentile(50), latency:percentile(99)))
end
