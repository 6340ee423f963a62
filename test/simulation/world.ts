import { createHash } from 'node:crypto';
import Sqlite from 'better-sqlite3';
import { isUnavailable } from '../../src/errors.ts';
import type { OperationId } from '../../src/generated/operations.ts';
import type { Job } from '../../src/jobs/runner.ts';
import type { Log } from '../../src/ports/runtime.ts';
import { migrations } from '../../src/storage/migrations/migrations.ts';
import { upgradeSqlite } from '../../src/storage/sqlite/upgrade-sqlite.ts';
import { type CallInput, type CallOptions, type Outcome, requestOf } from './client.ts';
import { type DiskFault, imageOf, type Moment, makeDisk } from './disk.ts';
import { type Exchange, exchange } from './in-process-http.ts';
import { calm, makeOutside, type Weather } from './outside.ts';
import { randomOf } from './random.ts';
import { makeScheduler } from './scheduler.ts';
import { type Server, startServer } from './server.ts';

/** What must never be true was true. */
export class SimulationFailure extends Error {
  constructor(message: string, options?: ErrorOptions) {
    super(message, options);
    this.name = 'SimulationFailure';
  }
}

/** What a client was answered. */
interface Answer {
  readonly id: OperationId;
  readonly requestId: string;
  readonly status: number;
  readonly headers: Readonly<Record<string, unknown>>;
  readonly text: string;
}

export type World = Awaited<ReturnType<typeof openWorld>>;

/** How many of the last lines a failure shows. */
const SHOWN_LINES = 60;

/** Characters of the log. Hashing each line by itself takes longer. */
const HASHED_AT_ONCE = 65_536;

const startMs = Date.UTC(2026, 0, 1);

/** The disk of a new server. */
let emptyDisk: Buffer | undefined;

function emptyImage(): Buffer {
  if (emptyDisk === undefined) {
    const handle = new Sqlite(':memory:');
    upgradeSqlite(
      handle,
      migrations.map(({ sqlite }) => sqlite),
    );
    emptyDisk = imageOf(handle);
    handle.close();
  }
  return emptyDisk;
}

/** A server and everything around it, all of whose decisions follow from a seed. */
export async function openWorld(seed: string, onLine: (line: string) => void = () => undefined) {
  const random = randomOf(seed);
  const clock = { nowMs: startMs };
  const weather: Weather = { ...calm };
  const lines: string[] = [];
  const digest = createHash('sha256');
  const figures = {
    ...{ crashes: 0, diskFaults: 0, resumed: 0, virtualMs: 0 },
    outcomes: {} as Record<string, number>,
  };
  /** What the simulation has reached. */
  function count(outcome: string): void {
    figures.outcomes[outcome] = (figures.outcomes[outcome] ?? 0) + 1;
  }
  let failure: SimulationFailure | undefined;

  let unhashed = '';
  function note(text: string): void {
    unhashed += `${text}\n`;
    if (unhashed.length > HASHED_AT_ONCE) hashNoted();
    lines.push(text);
    onLine(text);
    if (lines.length > SHOWN_LINES) lines.shift();
  }
  function hashNoted(): void {
    digest.update(unhashed);
    unhashed = '';
  }
  function fail(message: string, cause?: unknown): void {
    failure ??= new SimulationFailure(message, { cause });
  }
  const scheduler = makeScheduler(random, note, startMs);
  const life = { isOver: false };
  const disk = makeDisk(emptyImage(), drawDiskFault);
  const outside = makeOutside({
    ...{ seed, random, scheduler, clock, weather, note },
    onCall() {
      if (disk.isInTransaction) fail('something outside is called while a transaction is open');
    },
  });

  /** A crash that a step has asked for: this many statements and commits later. */
  let fuse: number | undefined;
  function drawDiskFault(moment: Moment): DiskFault | undefined {
    // Reads change nothing, and caches of modules save some of them.
    if (moment === 'read') return undefined;
    if (fuse !== undefined) {
      fuse -= 1;
      if (fuse <= 0) {
        fuse = undefined;
        const fault = random.pick(['crash before', 'crash after'] as const);
        note(`${fault} ${moment}`);
        return fault;
      }
    }
    if (!random.chance(weather.disk)) return undefined;
    const faults: Record<typeof moment, DiskFault[]> = {
      begin: ['busy'],
      write: ['full', 'busy'],
      commit: ['full', 'lost answer'],
    };
    const fault = random.pick(faults[moment]);
    note(`${fault} at ${moment}`);
    figures.diskFaults += 1;
    return fault;
  }

  const isExpected = (error: unknown, of: Server): boolean => of.life.isOver || isUnavailable(error);
  const log: Log = {
    debug: () => undefined,
    info: () => undefined,
    warn: () => undefined,
    error({ err }: { err?: unknown }, message) {
      if (server !== undefined && !isExpected(err, server)) fail(`logged as an error: ${message}`, err);
    },
  };

  const inProgress = new Set<Exchange>();
  /** What to do when the process can do nothing for a request any more. */
  const endings = new Set<() => void>();
  /** What clients were answered, for the judges. */
  const answers: Answer[] = [];
  const clients = new Set<string>();
  let clientCount = 0;
  const busy = new Set<string>();
  const dueMs = new Map<string, number>();
  /** The jobs that were woken while they ran. */
  const expected = new Set<string>();
  const wakeSoon = (job: string): void => {
    expected.add(job);
    dueMs.set(job, Math.min(dueMs.get(job) ?? 0, clock.nowMs));
  };
  let starts = 0;
  /** Each process takes over from the one before by itself, or is counted as another one. */
  const isAlone = random.chance(0.5);
  let server: Server | undefined;

  /** The connections of a process end with it. */
  function cutAll(): void {
    for (const each of inProgress) each.cut();
    inProgress.clear();
    for (const end of [...endings]) end();
  }

  /** Starts a process on the disk that the one before has left. One that fails or crashes while it starts is started again. */
  async function boot(): Promise<void> {
    for (let left = 50; ; left -= 1) {
      disk.recover();
      scheduler.drop();
      scheduler.dropTimers();
      busy.clear();
      starts += 1;
      const owner = isAlone ? 'sandbox' : (`process ${starts}` as const);
      let isCrashed = false;
      const onCrash = (): void => {
        isCrashed = true;
        cutAll();
      };
      try {
        // Starting waits at no gate.
        server = await startServer({
          ...{ seed, start: starts, owner, disk, outside, scheduler, clock, log, onCrash, wakeSoon },
        });
        await scheduler.settle();
        return;
      } catch (error) {
        const isForeseen = isCrashed || isUnavailable(error);
        if (left === 0 || !isForeseen)
          throw new SimulationFailure('the server does not start', { cause: error });
        note('the process ends while it starts');
      }
    }
  }

  async function crash(): Promise<void> {
    if (server === undefined) return;
    note('the process crashes');
    figures.crashes += 1;
    count('crash');
    server.life.isOver = true;
    cutAll();
    await boot();
    await scheduler.settle();
  }

  async function runJob(job: Job, of: Server): Promise<void> {
    const again = (): void => void dueMs.set(job.name, 0);
    try {
      if (await job.run(again)) again();
      // Nothing in a simulation wakes jobs at commits, so idle jobs depend on the job that finds due work.
      else if (job.idleMs !== undefined && (job.isIdle?.() ?? true) && !expected.has(job.name))
        dueMs.set(job.name, clock.nowMs + job.idleMs);
    } catch (error) {
      if (!isExpected(error, of)) fail(`the job ${job.name} failed`, error);
    }
    if (server === of) busy.delete(job.name);
  }

  /** After a step: a crash may have happened, or something that must not. */
  async function attend(): Promise<void> {
    if (server?.life.isOver === true) await crash();
    if (failure !== undefined) throw failure;
  }

  const world = {
    ...{
      seed,
      random,
      clock,
      weather,
      scheduler,
      outside,
      disk,
      life,
      note,
      count,
      fail,
      figures,
      lines,
      answers,
    },
    boot,
    crash,
    attend,
    hasRequests: () => inProgress.size > 0,
    /** What only the control plane of a sandbox uses. */
    parts: () => ({ services: server!.services, database: server!.database }),
    get jobs() {
      return server?.jobs ?? [];
    },
    /** The process crashes at the given statement from now. */
    light: (statements: number) => {
      fuse = statements;
    },
    quench: () => {
      fuse = undefined;
    },
    /** Starts a job that does not run already. */
    start(job: Job): void {
      const of = server;
      if (of === undefined || busy.has(job.name)) return;
      busy.add(job.name);
      expected.delete(job.name);
      dueMs.set(job.name, clock.nowMs + job.everyMs);
      note(`job ${job.name}`);
      scheduler.start(job.name, of.life, () => runJob(job, of));
    },
    /** The clients that have not ended. */
    clients,
    startClient(name: string, work: () => Promise<void>): void {
      clientCount += 1;
      const own = `${name} ${clientCount}`;
      note(`client ${own}`);
      clients.add(own);
      scheduler.start(own, life, () => work().finally(() => clients.delete(own)));
    },
    isDue: (job: Job) => !busy.has(job.name) && (dueMs.get(job.name) ?? 0) <= clock.nowMs,
    dueAll: () => dueMs.clear(),
    async resume(): Promise<boolean> {
      const resumed = await scheduler.resumeOne();
      if (resumed) figures.resumed += 1;
      await attend();
      return resumed;
    },
    async advance(byMs: number): Promise<void> {
      clock.nowMs += byMs;
      if (byMs > 0) figures.virtualMs += byMs;
      note(`clock ${clock.nowMs}`);
      await scheduler.advanceTimers(clock.nowMs);
      await attend();
    },
    async call<Id extends OperationId>(
      id: Id,
      input: CallInput,
      options: CallOptions = {},
    ): Promise<Outcome<Id>> {
      const sent = requestOf(id, input, options, await options.token?.());
      note(`call ${id} ${sent.target} ${sent.body ?? ''}`);
      const { handle, life: itsLife } = server!;
      const { promise: begins, resolve: begin } = Promise.withResolvers<Exchange>();
      const over = (): void => {
        if (endings.delete(over)) options.onOver?.();
      };
      endings.add(over);
      scheduler.start(id, itsLife, () => {
        const made = exchange(handle, sent);
        begin(made);
        return made.done.finally(over);
      });
      const begun = await begins;
      inProgress.add(begun);
      // Clients may leave before they have the answer.
      if (random.chance(weather.calls / 4)) {
        scheduler.start('client leaves', life, async () => {
          await scheduler.gate('client leaves', life);
          begun.cut();
        });
      }
      const reply = await scheduler.await(begun.reply);
      inProgress.delete(begun);
      if (reply.isLost) {
        note(`lost ${id}`);
        count(`${id} unknown`);
        return { kind: 'unknown' };
      }
      note(`answer ${id} ${reply.status} ${reply.text}`);
      answers.push({ id, requestId: String(reply.headers['x-request-id']), ...reply });
      if (reply.status === 500) fail(`${id} answered 500: ${reply.text}`);
      count(`${id} ${reply.status >= 500 ? 'unknown' : reply.status >= 400 ? 'refused' : 'done'}`);
      if (reply.status >= 500) return { kind: 'unknown' };
      const body = JSON.parse(reply.text === '' ? 'null' : reply.text);
      if (reply.status >= 400)
        return { kind: 'refused', status: reply.status, code: body.code ?? '', message: body.error };
      const isReplay = reply.headers['idempotent-replayed'] === 'true';
      return { kind: 'done', status: reply.status, body, text: reply.text, isReplay };
    },
    hash(): string {
      hashNoted();
      return digest.copy().digest('hex');
    },
    async close(): Promise<void> {
      life.isOver = true;
      if (server !== undefined) server.life.isOver = true;
      scheduler.drop();
      scheduler.close();
      await outside.simulated.close();
      disk.close();
    },
  };
  return world;
}
