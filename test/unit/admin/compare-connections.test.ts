import { expect, test } from 'vitest';
import { type Ask, compareConnections } from '../../../src/admin/doctor/compare-connections.ts';

// Nodes and poolers as their documents describe them, at the level of statements.

interface Node {
  readonly cluster: string;
  readonly place: string;
  readonly recovering: boolean;
  readonly version: string;
  readonly extensions: string;
  readonly locks: Set<string>;
}

interface Session {
  readonly node: Node;
  readonly pid: number;
  mark: string;
  lock: string | undefined;
}

let pids = 100;

const nodeOf = (more: Partial<Node> = {}): Node => ({
  ...{ cluster: '7001', place: '10.0.0.1:5432', recovering: false, extensions: '' },
  ...{ version: 'PostgreSQL 17.5 on x86_64-pc-linux-gnu', locks: new Set(), ...more },
});
function sessionOf(node: Node, pid?: number): Session {
  pids += 1;
  return { node, pid: pid ?? pids, mark: '', lock: undefined };
}

function answer(session: Session, text: string, values: readonly unknown[]): Record<string, unknown>[] {
  const { node } = session;
  if (/version\(\)/.test(text)) return [{ version: node.version, extensions: node.extensions }];
  if (/set_config/.test(text)) session.mark = String(values[0] ?? '');
  if (/current_setting/.test(text)) return [{ mark: session.mark }];
  if (/pg_advisory_xact_lock/.test(text)) {
    if (node.recovering) throw new Error('cannot acquire lock mode ExclusiveLock during recovery');
    session.lock = values.join();
    node.locks.add(session.lock);
  }
  if (/rollback|commit/.test(text) && session.lock !== undefined) node.locks.delete(session.lock);
  return [
    { ...{ pid: session.pid, place: node.place, cluster: node.cluster, recovering: node.recovering } },
  ].map((row) => ({ ...row, has_lock: node.locks.has(values.join()) }));
}

/** A connection that leads to this node for as long as it lasts. */
function connected(node: Node, pid?: number): Ask {
  const session = sessionOf(node, pid);
  return async (text, values = []) => answer(session, text, values);
}

/** A pooler in transaction mode: what has become free last is used next. */
function pooler(node: Node): () => Ask {
  const free: Session[] = [];
  return () => {
    let held: Session | undefined;
    return async (text, values = []) => {
      const session: Session = held ?? free.pop() ?? sessionOf(node);
      if (text === 'begin') held = session;
      const rows = answer(session, text, values);
      if (text === 'commit' || text === 'rollback') held = undefined;
      if (held === undefined) free.push(session);
      return rows;
    };
  };
}

async function findingsOf(asks: readonly Ask[], isPooled = false): Promise<string[]> {
  const found = await compareConnections(asks, { isPooled, marks: [200, 2, 3, 4, 255, 6, 7, 8] });
  for (const { state, advice } of found) expect(advice === undefined).toBe(state === 'ok');
  return found.map(({ state, text }) => `${state}: ${text}`);
}

const times = (count: number, make: () => Ask): Ask[] => Array.from({ length: count }, make);
const fine = 'ok: 4 connections lead to one server and see its locks';

test('four connections to one server are found to be fine, and leave no lock', async () => {
  const node = nodeOf();
  expect(await findingsOf(times(4, () => connected(node)))).toEqual([fine]);
  // Nothing is left behind.
  expect(node.locks.size).toBe(0);
});

test.each([0, 1, 3])('a proxy that leads one of four connections to another cluster: %i', async (at) => {
  const [one, other] = [nodeOf(), nodeOf({ cluster: '7002', place: '10.0.0.2:5432' })];
  const asks = times(4, () => connected(one)).with(at, connected(other));
  expect(await findingsOf(asks)).toEqual([
    expect.stringMatching(
      /^fault: 4 connections lead to 2 clusters \(.*10\.0\.0\.\d:5432\), by .*700\d, 700\d$/,
    ),
  ]);
});

test.each([0, 2])('a proxy that leads one of four connections to a standby: %i', async (at) => {
  const [primary, standby] = [nodeOf(), nodeOf({ recovering: true, place: '10.0.0.2:5432' })];
  const asks = times(4, () => connected(primary)).with(at, connected(standby));
  expect(await findingsOf(asks)).toEqual([
    expect.stringMatching(/^fault: 1 of 4 connections lead to a standby, the others to the primary/),
  ]);
});

test.each([0, 2])('nodes that seem to be one cluster, as copies of a disk do: %i', async (at) => {
  const [one, copy] = [nodeOf(), nodeOf()];
  const asks = times(4, () => connected(one)).with(at, connected(copy));
  expect(await findingsOf(asks)).toEqual([
    expect.stringMatching(/^fault: of 4 connections .* not all see a lock that one of them holds/),
  ]);
});

test('two sessions of one number are on different machines', async () => {
  const node = nodeOf();
  expect(await findingsOf([connected(node, 7), connected(node, 8), connected(node, 7)])).toEqual([
    expect.stringMatching(/^fault: of 3 connections/),
  ]);
});

test('a pooler in transaction mode is a fault, unless the URL says so', async () => {
  expect(await findingsOf(times(4, pooler(nodeOf())))).toEqual([
    expect.stringMatching(/^fault: sessions last for a transaction only/),
    fine,
  ]);
  expect(await findingsOf(times(4, pooler(nodeOf())), true)).toEqual([fine]);
});

test.each([
  ['spock', /^warning: it has an extension that lets several nodes write \(spock\)/],
  ['bdr, citus', /^warning: it has an extension that lets several nodes write \(bdr, citus\)/],
])('the extension %s is named, even if all connections lead to one node', async (extensions, expected) => {
  const node = nodeOf({ extensions });
  expect(await findingsOf(times(4, () => connected(node)))).toEqual([expect.stringMatching(expected), fine]);
});

test('Citus behind an address of all its nodes', async () => {
  const place = (last: number) => ({
    cluster: `700${last}`,
    place: `10.0.0.${last}:5432`,
    extensions: 'citus',
  });
  const [coordinator, worker] = [nodeOf(place(1)), nodeOf(place(2))];
  expect(await findingsOf([coordinator, worker, coordinator, worker].map((node) => connected(node)))).toEqual(
    [expect.stringMatching(/^fault: 4 connections lead to 2 clusters/)],
  );
});

test.each([
  ['CockroachDB CCL v24.1.0 (x86_64-pc-linux-gnu)', 'CockroachDB'],
  ['PostgreSQL 15.12-YB-2025.1.0.0-b0 on x86_64-pc-linux-gnu', 'YugabyteDB'],
  ['PostgreSQL 12.12 (Greenplum Database 7.1.0)', 'Greenplum'],
])('%s', async (version, name) => {
  const node = nodeOf({ version });
  expect(await findingsOf(times(4, () => connected(node)))).toEqual([
    `fault: it is ${name}, whose locks and sequences are not those of PostgreSQL`,
  ]);
});
