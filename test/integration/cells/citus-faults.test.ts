import { execFile, execFileSync } from 'node:child_process';
import { existsSync, readFileSync, rmSync, statfsSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import { promisify } from 'node:util';
import { Client } from 'pg';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { exportLog } from '../../../src/admin/audit/export-log.ts';
import { verifyLog } from '../../../src/admin/audit/verify-log.ts';
import { figureSize, isLong, noteFigure } from '../../figures/figure.ts';
import {
  type CellName,
  type CitusCells,
  citusUrl,
  inSchema,
  openCitusCells,
  type Worker,
} from '../../support/postgres/citus-cells.ts';
import {
  asPostgres,
  asPostgresMeanwhile,
  copyNode,
  hasDebianPostgres,
} from '../../support/postgres/debian-postgres.ts';
import { temporaryFolder } from '../../support/run-custos.ts';

/*
 * What becomes of two cells on a cluster when the worker of one of them stops, dies, hangs, is full or was restored, and
 * when all nodes are killed at once:
 * `TEST_LONG=1 TEST_CITUS_URL=… npx vitest run test/integration/cells/citus-faults.test.ts`, as root, with a cluster of
 * Debian's PostgreSQL on this machine. It stops and replaces the workers.
 */
const isRun = citusUrl !== undefined && isLong && hasDebianPostgres;

const BEFORE_MS = 10_000;
const FAULT_MS = 15_000;
const AFTER_MS = 10_000;

interface Outcome {
  readonly status: number;
  readonly ms: number;
  readonly atMs: number;
  readonly retryAfter: string | null;
}

/** A node's processes and files. */
interface WorkerServer {
  readonly folder: string;
  readonly port: number;
  readonly pid: number;
}

async function serverOf({ url }: Pick<Worker, 'url'>): Promise<WorkerServer> {
  const client = new Client({ connectionString: url });
  await client.connect();
  const { rows } = await client.query<{ folder: string }>(
    "select current_setting('data_directory') as folder",
  );
  await client.end();
  const { folder } = rows[0]!;
  const [pid] = readFileSync(join(folder, 'postmaster.pid'), 'utf8').split('\n');
  return { folder, port: Number(new URL(url).port), pid: Number(pid) };
}

/** Sends a signal to the server and all of its processes. */
function signalAll({ pid }: WorkerServer, signal: NodeJS.Signals): void {
  const children = readFileSync(`/proc/${pid}/task/${pid}/children`, 'utf8').match(/\d+/g) ?? [];
  for (const each of [pid, ...children.map(Number)])
    try {
      process.kill(each, signal);
    } catch {
      // It has ended meanwhile.
    }
}

const start = ({ folder }: WorkerServer): Promise<void> =>
  asPostgresMeanwhile('pg_ctl', '-D', folder, '-w', '-l', join(folder, 'log'), 'start');

describe.runIf(isRun)(
  'faults of a worker (needs TEST_LONG=1, TEST_CITUS_URL and the cluster on this machine)',
  () => {
    let cells: CitusCells;
    beforeAll(async () => {
      cells = await openCitusCells(citusUrl!);
    });
    afterAll(() => cells.close());

    /** Two clients of each app create, read and sign, before, during and after a fault of the worker of cell `two`. */
    async function under(name: string, fault: { begin(): unknown; end(): unknown }): Promise<void> {
      const outcomes: Record<CellName, Outcome[]> = { one: [], two: [] };
      const acknowledged: Record<CellName, string[]> = { one: [], two: [] };
      let isOver = false;
      const beganAtMs = performance.now();
      const client = async (cell: CellName): Promise<void> => {
        while (!isOver) {
          const created = await cells.createWallet(cell);
          const done = [created];
          if (created.status === 200) {
            const { id } = created.body;
            acknowledged[cell].push(id!);
            done.push(await cells.call(cell, 'GET', `/v1/wallets/${id}`));
            const hello = { method: 'personal_sign', params: { message: 'Hello', encoding: 'utf-8' } };
            done.push(await cells.call(cell, 'POST', `/v1/wallets/${id}/rpc`, hello));
          } else await pause(50);
          const atMs = performance.now() - beganAtMs;
          outcomes[cell].push(
            ...done.map(({ status, ms, retryAfter }) => ({ status, ms, retryAfter, atMs })),
          );
        }
      };
      const clients = (['one', 'one', 'two', 'two'] as const).map(client);
      await pause(BEFORE_MS);
      await fault.begin();
      const faultAtMs = performance.now() - beganAtMs;
      await pause(FAULT_MS);
      await fault.end();
      const endedAtMs = performance.now() - beganAtMs;
      await expect
        .poll(() => outcomes.two.some(({ status, atMs }) => status === 200 && atMs > endedAtMs), {
          timeout: 60_000,
        })
        .toBe(true);
      const recoveredAtMs = outcomes.two.find(({ status, atMs }) => status === 200 && atMs > endedAtMs)!.atMs;
      await pause(AFTER_MS);
      isOver = true;
      await Promise.all(clients);
      const p99 = (list: readonly Outcome[]): number =>
        Math.round(list.map(({ ms }) => ms).toSorted((a, b) => a - b)[Math.floor(list.length * 0.99)] ?? 0);
      const during = (list: readonly Outcome[]) =>
        list.filter(({ atMs }) => atMs > faultAtMs && atMs < recoveredAtMs);
      const refused = outcomes.two.filter(({ status }) => status !== 200);
      noteFigure({
        fault: name,
        ...{
          requests: outcomes.one.length,
          failed: outcomes.one.filter(({ status }) => status !== 200).length,
        },
        p99BeforeMs: p99(outcomes.one.filter(({ atMs }) => atMs < faultAtMs)),
        p99DuringMs: p99(during(outcomes.one)),
        ...{ duringOfOther: during(outcomes.one).length, refused: refused.length },
        refusedMostMs: Math.round(Math.max(0, ...refused.map(({ ms }) => ms))),
        recoveredAfterMs: Math.round(recoveredAtMs - endedAtMs),
        acknowledged: acknowledged.one.length + acknowledged.two.length,
      });
      expect(new Set(outcomes.one.map(({ status }) => status))).toEqual(new Set([200]));
      const wrong = refused.filter(({ status, retryAfter }) => status !== 503 || !(Number(retryAfter) > 0));
      expect(wrong, cells.errors().join('\n')).toEqual([]);
      expect(refused.length).toBeGreaterThan(0);
      for (const cell of ['one', 'two'] as const) {
        const stored = await cells.walletsOf(cell);
        expect(acknowledged[cell].filter((id) => !stored.has(id))).toEqual([]);
      }
      expect(await cells.server().metrics()).toContain('custos_changes_held{cell="two"} 0');
    }

    test('stopped', { timeout: 180_000 }, async () => {
      const worker = await serverOf(await cells.ownerOf('two'));
      await under('stopped', {
        begin: () => asPostgresMeanwhile('pg_ctl', '-D', worker.folder, '-m', 'immediate', 'stop'),
        end: () => start(worker),
      });
    });

    test('killed', { timeout: 180_000 }, async () => {
      const worker = await serverOf(await cells.ownerOf('two'));
      await under('killed', { begin: () => signalAll(worker, 'SIGKILL'), end: () => start(worker) });
    });

    test('frozen', { timeout: 180_000 }, async () => {
      const worker = await serverOf(await cells.ownerOf('two'));
      await under('frozen', {
        begin: () => signalAll(worker, 'SIGSTOP'),
        end: () => signalAll(worker, 'SIGCONT'),
      });
    });

    test('full, if its files are on a small disk of their own', { timeout: 180_000 }, async (context) => {
      const worker = await serverOf(await cells.ownerOf('two'));
      const { bavail, bsize } = statfsSync(worker.folder);
      if (bavail * bsize > 4 * 2 ** 30) return context.skip();
      const filler = join(worker.folder, 'filler');
      await under('full', {
        begin: () => promisify(execFile)('sh', ['-c', `cat /dev/zero > ${filler} || true`]),
        async end() {
          rmSync(filler);
          if (!isRunning(worker)) await start(worker);
        },
      });
    });

    /** Every acknowledged wallet is stored, and every stored one has its key and one record in a log that verifies. */
    async function judge(cell: CellName, acknowledged: readonly string[]): Promise<number> {
      const schema = cells.schemas[cell];
      const idsOf = async (sql: string): Promise<string[]> =>
        (await cells.ask<{ id: string }>(sql)).map(({ id }) => id).sort();
      const wallets = await idsOf(`select id from "${schema}".wallets`);
      expect(acknowledged.filter((id) => !wallets.includes(id))).toEqual([]);
      expect(await idsOf(`select wallet_id as id from "${schema}".wallet_keys`)).toEqual(wallets);
      const entries = `select entry::json as entry from "${schema}".audit_records
        union all select entry::json from "${schema}".audit_pending`;
      const recorded = await idsOf(`select entry->'ids'->>'id' as id from (${entries}) as entries
        where entry->>'operation' = 'createWallet' and entry->>'decision' = 'allow'`);
      expect(recorded).toEqual(wallets);
      const folder = join(temporaryFolder(), 'audit');
      const url = inSchema(citusUrl!, schema);
      await expect
        .poll(() => exportLog({ kind: 'postgres', url }, folder).catch(() => undefined), { timeout: 30_000 })
        .toMatchObject({ from: 0 });
      expect((await verifyLog(folder)).faults).toEqual([]);
      return wallets.length;
    }

    const cuts = figureSize({ short: 5, long: 20 });
    test(`${cuts} kills of all nodes at once leave what was acknowledged, with one record for each effect`, {
      timeout: 1_800_000,
    }, async () => {
      const nodes = [{ url: citusUrl! }, ...cells.workers];
      const acknowledged: Record<CellName, string[]> = { one: [], two: [] };
      const count = (): number => acknowledged.one.length + acknowledged.two.length;
      let isOver = false;
      let refused = 0;
      const wrong: object[] = [];
      const client = async (cell: CellName): Promise<void> => {
        while (!isOver) {
          const { status, body, retryAfter } = await cells.createWallet(cell);
          if (status === 200) acknowledged[cell].push(body.id!);
          else {
            if (status !== 503 || !(Number(retryAfter) > 0)) wrong.push({ status, retryAfter, body });
            refused += 1;
            await pause(50);
          }
        }
      };
      const before = { one: await cells.walletsOf('one'), two: await cells.walletsOf('two') };
      const clients = (['one', 'one', 'two', 'two'] as const).map(client);
      for (let cut = 0; cut < cuts; cut += 1) {
        const enough = count() + 20 + ((cut * 7) % 11);
        await expect.poll(count, { timeout: 120_000 }).toBeGreaterThan(enough);
        const servers = await Promise.all(nodes.map(serverOf));
        await pause((cut * 37) % 23);
        for (const server of servers) signalAll(server, 'SIGKILL');
        // It does not start before the last process of the killed one has ended.
        const begin = (server: WorkerServer): Promise<boolean> =>
          start(server).then(
            () => true,
            () => false,
          );
        for (const server of servers)
          await expect.poll(() => begin(server), { timeout: 60_000, interval: 200 }).toBe(true);
      }
      await expect.poll(count, { timeout: 120_000 }).toBeGreaterThan(count() + 20);
      isOver = true;
      await Promise.all(clients);
      expect(wrong, cells.errors().join('\n')).toEqual([]);
      // The engine completes the commits that a node had prepared.
      await expect
        .poll(
          () =>
            cells.ask(
              "select 1 from run_command_on_workers('select count(*) from pg_prepared_xacts') where result <> '0'",
            ),
          {
            timeout: 120_000,
          },
        )
        .toEqual([]);
      const stored = { one: await judge('one', acknowledged.one), two: await judge('two', acknowledged.two) };
      noteFigure({
        ...{ fault: 'kills of all nodes', cuts, refused, acknowledged: count() },
        stored: stored.one + stored.two - before.one.size - before.two.size,
      });
    });

    test('restored from a backup: the changes of its cell are held until they are released', {
      timeout: 180_000,
    }, async () => {
      const worker = await serverOf(await cells.ownerOf('two'));
      const backup = await copyNode(worker);
      const lost = await cells.createWallet('two');
      expect(lost.status).toBe(200);
      const replace = (): Promise<void> => {
        asPostgres('pg_ctl', '-D', worker.folder, '-m', 'immediate', 'stop');
        execFileSync('mv', [worker.folder, `${worker.folder}.lost`]);
        execFileSync('mv', [backup.folder, worker.folder]);
        execFileSync('touch', [join(worker.folder, 'recovery.signal')]);
        execFileSync('sh', [
          '-c',
          `echo "restore_command = 'false'" >> ${worker.folder}/postgresql.auto.conf`,
        ]);
        return start(worker);
      };
      await replace();
      const held = async () => (await cells.createWallet('two')).status;
      await expect
        .poll(async () => cells.server().metrics(), { timeout: 30_000 })
        .toContain('custos_changes_held{cell="two"} 1');
      expect(await held()).toBe(503);
      expect((await cells.call('two', 'GET', '/v1/wallets')).status).toBe(200);
      expect((await cells.createWallet('one')).status).toBe(200);
      expect((await cells.walletsOf('two')).has(lost.body.id!)).toBe(false);
      // A server that starts afterwards holds them too.
      await cells.restart();
      expect(await held()).toBe(503);
      await cells.run('restored', 'release', '--cell', 'two');
      await expect.poll(held, { timeout: 30_000 }).toBe(200);
      rmSync(`${worker.folder}.lost`, { recursive: true });
    });
  },
);

function isRunning({ folder }: WorkerServer): boolean {
  if (!existsSync(join(folder, 'postmaster.pid'))) return false;
  try {
    asPostgres('pg_ctl', '-D', folder, 'status');
    return true;
  } catch {
    return false;
  }
}
