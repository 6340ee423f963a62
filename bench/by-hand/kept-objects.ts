import { once } from 'node:events';
import type { HeapProfiler } from 'node:inspector';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { startLoad } from '../measure/load.ts';
import { walletRequests } from '../requests-of-wallets.ts';
import { launchCustos } from '../servers/custos.ts';
import { temporaryFolder } from '../servers/launch.ts';

// Shows what each request leaves in the old generation of the heap: `node bench/by-hand/kept-objects.ts personal_sign
// --data`. A request should leave next to nothing: what outlives the young generation is copied twice, fills the heap and
// is freed only by a full garbage collection. What made whole requests stay there:
// - an accessor in an object literal (`get em() {}`), and a function that is assigned to a property (`query.callback =
//   () => {}`): V8 allocates both in the old generation, with all that they refer to;
// - a Map or Set to which each request is added and from which it is removed: each new table is referred to by the one
//   before, so one old table keeps all later ones, with the requests that were in them;
// - the values of a WeakMap that is itself old.

const { values, positionals } = parseArgs({
  options: { data: { type: 'boolean', default: false }, record: { type: 'string', default: 'on' } },
  allowPositionals: true,
});
const requestName = (positionals[0] ?? 'getWallet') as 'getWallet' | 'createWallet' | 'personal_sign';
const SECONDS = 6;

interface Site {
  readonly bytes: number;
  readonly stack: string;
}

function sitesOf(node: HeapProfiler.SamplingHeapProfileNode, callers: readonly string[] = []): Site[] {
  const { functionName, url, lineNumber } = node.callFrame;
  const stack = [`${functionName || '(anonymous)'} ${url.split('/').at(-1)}:${lineNumber + 1}`, ...callers];
  const below = node.children.flatMap((child) => sitesOf(child, stack));
  return node.selfSize === 0
    ? below
    : [{ bytes: node.selfSize, stack: stack.slice(0, 4).join(' < ') }, ...below];
}

const load = startLoad();
const server = await launchCustos({
  command: 'sandbox',
  flags: ['--record', values.record, ...(values.data ? ['--data', temporaryFolder()] : [])],
  before: join('bench', 'servers', 'sample-heap.ts'),
});
const requests = (await walletRequests(server))[requestName];
const order = { origins: [server.origin], requests, connections: 16 };
// Until the functions are compiled.
await load.run({ ...order, seconds: SECONDS });
server.child.send('sample');
const { completed } = await load.run({ ...order, seconds: SECONDS });
const sent = once(server.child, 'message') as Promise<[HeapProfiler.SamplingHeapProfile]>;
server.child.send('read');
const [profile] = await sent;
const sites = sitesOf(profile.head).sort((one, other) => other.bytes - one.bytes);
const total = sites.reduce((sum, { bytes }) => sum + bytes, 0);
console.log(
  `${requestName}: ${Math.round(total / completed)} bytes kept per request, of ${completed} requests`,
);
for (const { bytes, stack } of sites.slice(0, 25)) {
  console.log(`${String(Math.round(bytes / completed)).padStart(7)}  ${stack}`);
}
await server.stop();
load.stop();
