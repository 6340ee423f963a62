import { setTimeout as pause } from 'node:timers/promises';
import { LRUCache } from 'lru-cache';
import { asStartError, ReadOnlyDatabaseError } from '../../admin/administration.ts';
import { unknownCells } from '../../admin/cells.ts';
import type { ServeConfig } from '../../config/config.ts';
import { StartError } from '../../config/start-error.ts';
import { isUnavailable, notFound } from '../../errors.ts';
import { operations } from '../../generated/operations.ts';
import { limitTo } from '../../jobs/job-context.ts';
import type { Services } from '../../ports/operation-context.ts';
import type { Log } from '../../ports/runtime.ts';
import type { Admission } from '../../server/admission.ts';
import { type Cell, cellUnavailable, routeByCell } from '../../server/cells.ts';
import { type CellDirectory, openCellDirectory } from '../../storage/cell-directory.ts';
import {
  type CellConnections,
  connectCell,
  type OpenCell,
  type SharedParts,
  startCell,
} from './open-cell.ts';

/** CHOICE: how often to retry a cell that could not start together with the server. */
const RETRY_MS = 5_000;

/**
 * CHOICE: this many cells start at the same time, first attempts and retries together. With hundreds, the event loop
 * would be too late for the time limits of their connections. A cell whose database hangs keeps its place for some
 * seconds.
 */
const STARTS_AT_ONCE = 16;

/** CHOICE: how many cells are checked concurrently for whether they can serve their apps. */
const CHECKS_AT_ONCE = 8;
/**
 * CHOICE: how often the schema of a cell whose heartbeats are stored is checked. A newer version may change the schema.
 */
const RECHECK_MS = 60_000;

/** CHOICE: how long an app's entry is cached before the directory is queried again. */
const CACHE_MS = 10_000;
/** CHOICE: how long the absence of an entry is cached. It is short, because an app may get an entry at any moment. */
const UNKNOWN_CACHE_MS = 2_000;
const MAX_CACHED = 100_000;
const MAX_ABSENT = 10_000;
const WARN_EVERY_MS = 1_000;
/**
 * CHOICE: at most this many look-ups run at the same time. Further ones are rejected, because the directory is slow or
 * flooded with unknown apps.
 */
const MAX_LOOK_UPS = 256;

/** The opened cells of a server, and the routing of requests to them. */
export interface Cells {
  /** The parts of the pipeline that route each request to its app's cell. */
  readonly routes: ReturnType<typeof routeByCell>;
  /** Returns the cells that have started. */
  opened(): readonly OpenCell[];
  /**
   * Returns a cell.
   *
   * @throws ApiError not_found for an unknown cell; unavailable for a cell that has not started.
   */
  named(name: string): OpenCell;
  /** Returns, by the cell's name, 1 if a cell cannot serve its apps and 0 if it can. */
  unavailable(): Readonly<Record<string, number>>;
  /** Rejects while no cell can serve its apps. */
  checkReady(): Promise<void>;
  /** Stops the jobs of all cells. The connections stay open. */
  close(): Promise<void>;
}

/** The connections of a server to its databases. They are opened without waiting for the databases. */
export interface Connections {
  readonly cells: readonly [CellConnections, ...CellConnections[]];
  /** The directory that has the cell of each app. Undefined for a deployment with one cell. */
  readonly directory: CellDirectory | undefined;
  close(): Promise<void>;
}

export async function connectCells(
  { cells: [first, ...others], directoryUrl }: ServeConfig['cells'],
  parts: Parameters<typeof connectCell>[1],
): Promise<Connections> {
  const cells: [CellConnections, ...CellConnections[]] = [await connectCell(first, parts)];
  for (const settings of others) cells.push(await connectCell(settings, parts));
  const directory =
    directoryUrl === undefined
      ? undefined
      : openCellDirectory(directoryUrl, (err) =>
          parts.log.warn({ err }, 'lost a connection to the directory of cells'),
        );
  return {
    ...{ cells, directory },
    async close() {
      await Promise.all([...cells.map((cell) => cell.close()), directory?.close()]);
    },
  };
}

/** Thrown when two cells of the cells file have the same database, whose jobs would run twice. */
class SharedDatabaseError extends StartError {
  constructor(first: string, second: string) {
    super(`the cells \`${first}\` and \`${second}\` have the same database and schema`);
    this.name = 'SharedDatabaseError';
  }
}

interface OpenOptions {
  readonly shared: SharedParts;
  /** The admission control of each cell, by its name. */
  readonly admissions: ReadonlyMap<string, Admission | undefined>;
  /** The maximum number of requests in progress per cell. */
  readonly maxPerCell: number;
}

/**
 * Starts all cells. A cell that cannot start is retried until it can, provided that at least one other cell has
 * started.
 *
 * @throws StartError if no cell starts.
 */
export async function openCells(
  { cells: connected, directory }: Connections,
  { shared, admissions, maxPerCell }: OpenOptions,
): Promise<Cells> {
  const { log } = shared.services;
  const open = new Map<string, OpenCell>();
  const owners = new Map<string, string>();
  const claim = (name: string, identity: string): void => {
    const owner = owners.get(identity) ?? name;
    owners.set(identity, owner);
    if (owner !== name) throw new SharedDatabaseError(owner, name);
  };
  const stopping = new AbortController();
  const inTurn = limitTo(STARTS_AT_ONCE);
  const failures = new Map<CellConnections, unknown>();
  const start = (cell: CellConnections, recoveryMs: number | undefined): Promise<void> =>
    inTurn(async () => {
      const { name } = cell.settings;
      if (stopping.signal.aborted) return;
      try {
        const started = await startCell(cell, shared, {
          ...{ admission: admissions.get(name), recoveryMs },
          findNext: names && ((appId) => findNext(appId, name)),
          claim: (identity) => claim(name, identity),
        });
        open.set(name, started);
        failures.delete(cell);
      } catch (error) {
        failures.set(cell, asStartError(error, directory === undefined ? undefined : name));
      }
    });
  const names = directory && cacheNames(directory, log);
  const findNext = async (appId: string, before: string): Promise<OpenCell | undefined> => {
    const next = open.get((await names?.findAgain(appId)) ?? connected[0].settings.name);
    if (next === undefined || next.name === before || (await next.moves?.isLeaving(appId))) return undefined;
    return next;
  };
  const hasOthers = connected.length > 1;
  // A cell in recovery must not keep the place that healthy cells wait for. It is retried anyway.
  const follower = directory && followDirectory(directory, connected, { log, signal: stopping.signal });
  await Promise.all([
    ...connected.map((cell) => start(cell, hasOthers ? 0 : undefined)),
    follower?.firstAttempt,
  ]);
  if (open.size === 0 && hasOthers) {
    // No cell has started, so this wait delays no cell, and a server that gave up now would have to be started again.
    const recovering = connected.filter((cell) => failures.get(cell) instanceof ReadOnlyDatabaseError);
    await Promise.all(recovering.slice(0, STARTS_AT_ONCE).map((cell) => start(cell, undefined)));
  }
  const shares = [...failures.values()].find((failure) => failure instanceof SharedDatabaseError);
  if (shares !== undefined || open.size === 0) {
    stopping.abort();
    await Promise.all([...open.values()].map((cell) => cell.close()));
    throw shares ?? failures.get(connected[0]);
  }
  /** Retries the start of a cell until it succeeds or the server stops. */
  const startLate = async (cell: CellConnections): Promise<void> => {
    const { name } = cell.settings;
    let logged: string | undefined;
    while (!open.has(name)) {
      const err = failures.get(cell);
      const reason = String(err);
      // Log a repeated reason at `debug`, because an hour of retries would write 720 lines for each cell.
      const level = reason === logged ? 'debug' : 'error';
      log[level]({ err, cell: name }, 'a cell could not start; will retry');
      logged = reason;
      await pause(RETRY_MS, undefined, { signal: stopping.signal, ref: false }).catch(() => undefined);
      if (stopping.signal.aborted) return;
      await start(cell, 0);
    }
    log.info({ cell: name }, 'a cell has started');
    await open
      .get(name)!
      .prepareLogins(shared.services.keyStore)
      .catch((err: unknown) => log.error({ err, cell: name }, 'failed to prepare the logins of a cell'));
  };
  const late = connected.filter(({ settings }) => !open.has(settings.name));
  const starting = late.map(startLate);

  const first = connected[0].settings.name;
  const anyCell = (): Cell => open.get(first) ?? [...open.values()][0]!;
  const isKnown = (name: string): boolean => connected.some(({ settings }) => settings.name === name);
  const named = (name: string): OpenCell => {
    const cell = open.get(name);
    if (cell !== undefined) return cell;
    throw isKnown(name) ? cellUnavailable('the database of this app is unavailable') : notFound('Cell');
  };
  const placedIn = (name: string): OpenCell => {
    if (isKnown(name)) return named(name);
    throw cellUnavailable('the cell of this app is not in the cells file of the server');
  };
  const isServing = serving(shared.services.machine);
  const inCheck = limitTo(CHECKS_AT_ONCE);
  return {
    routes: routeByCell({
      operations: Object.keys(operations),
      cellOf: async (appId, address) => {
        if (names === undefined) return anyCell();
        const known = names.cached(appId);
        if (known === undefined) await shared.failures?.requireAttemptsLeft(address);
        const cell = placedIn(known ?? (await names.find(appId)) ?? first);
        if (!((await cell.moves?.isLeaving(appId)) ?? false)) return cell;
        // The cached entry may be older than the move.
        const next = placedIn((await names.findAgain(appId)) ?? first);
        if (next !== cell && !((await next.moves?.isLeaving(appId)) ?? false)) return next;
        throw cellUnavailable('this app is being moved to another cell');
      },
      confirm: (appId, cell) => names?.keep(appId, cell),
      ...{ anyCell, maxPerCell },
    }),
    opened: () => [...open.values()],
    named,
    unavailable() {
      const states = connected.map(({ settings: { name } }) => {
        const cell = open.get(name);
        return [name, cell !== undefined && isServing(cell) ? 0 : 1] as const;
      });
      return Object.fromEntries(states);
    },
    async checkReady() {
      const cells = [...open.values()];
      // A server that knows no app would refuse all of them.
      if (follower?.isReached() === false && names?.knowsAny() !== true)
        throw new Error('the directory of apps is unavailable');
      if (connected.length === 1) return cells[0]!.checkReady();
      if (cells.some(isServing)) return;
      const checks = cells.map((cell) => inCheck(() => cell.checkReady()));
      await Promise.any(checks).catch((cause: unknown) => {
        throw new Error('no cell can serve its apps', { cause });
      });
    },
    async close() {
      stopping.abort();
      await Promise.all(starting);
      await Promise.all([...open.values()].map((cell) => cell.close()));
    },
  };
}

/** Tries to read the directory until it succeeds once. Logs why it fails, and which cells the server lacks. */
function followDirectory(
  directory: CellDirectory,
  cells: Connections['cells'],
  { log, signal }: { readonly log: Log; readonly signal: AbortSignal },
) {
  let isReached = false;
  let logged: string | undefined;
  const attempt = async (): Promise<void> => {
    try {
      const apps = await directory.countByCell();
      isReached = true;
      for (const text of unknownCells(
        cells.map(({ settings }) => settings),
        apps,
      ))
        log.error({}, text);
    } catch (err) {
      const reason = String(err);
      log[reason === logged ? 'debug' : 'error']({ err }, 'the directory of apps is unavailable; will retry');
      logged = reason;
    }
  };
  const firstAttempt = attempt();
  void firstAttempt.then(async () => {
    while (!isReached && !signal.aborted) {
      await pause(RETRY_MS, undefined, { signal, ref: false }).catch(() => undefined);
      if (!signal.aborted) await attempt();
    }
  });
  return { firstAttempt, isReached: () => isReached };
}

/**
 * Returns a function that finds out whether a cell can serve its apps, without waiting for its database. Heartbeats
 * show that a cell accepts changes. Its schema is checked later, beside the caller. If every caller queried the
 * databases of hundreds of cells at the same time, the responses would be too late for their time limits.
 */
function serving({ now }: Services['machine']): (cell: OpenCell) => boolean {
  const inTurn = limitTo(CHECKS_AT_ONCE);
  const states = new WeakMap<OpenCell, { nextMs: number; isUsable: boolean }>();
  const check = (cell: OpenCell, state: { nextMs: number; isUsable: boolean }): void => {
    state.nextMs = Number.POSITIVE_INFINITY;
    const end = (isUsable: boolean): void => {
      // A cell with a fault is checked again for the next caller.
      Object.assign(state, { isUsable, nextMs: isUsable ? now() + RECHECK_MS : now() });
    };
    inTurn(() => cell.checkReady()).then(
      () => end(true),
      // The cell's heartbeats show whether the database responds. A response that is only late is not a fault.
      (error: unknown) => end(isUnavailable(error) && state.isUsable),
    );
  };
  return (cell) => {
    // The start has checked the schema.
    const state = states.get(cell) ?? { nextMs: now() + RECHECK_MS, isUsable: true };
    states.set(cell, state);
    const isAlive = cell.isAlive();
    if (isAlive && now() >= state.nextMs) check(cell, state);
    return isAlive && state.isUsable && cell.database.readiness?.isExhausted() !== true;
  };
}

/** The ids that apps can have. Other ids need no look-up. */
const appIds = /^[A-Za-z0-9_-]{1,64}$/;

/** Finds the cells of apps in the directory, and caches their names. */
interface CellNames {
  /**
   * Returns the name of a cell that was found before, even while the directory is unavailable. A name that is older
   * than `CACHE_MS` is looked up again in parallel with the request.
   */
  cached(appId: string): string | undefined;
  /** Looks up an app. Returns undefined for an app without an entry. Throws unavailable. */
  find(appId: string): Promise<string | undefined>;
  /** Looks up an app whatever is cached. Throws unavailable. */
  findAgain(appId: string): Promise<string | undefined>;
  /** Caches the cell of an app that has proved to be in it, even if the directory has no entry for the app. */
  keep(appId: string, cell: string): void;
  /** Returns whether the cell of any app is known. */
  knowsAny(): boolean;
}

function cacheNames(directory: CellDirectory, log: Log): CellNames {
  const placed = new LRUCache<string, { readonly cell: string; readonly untilMs: number }>({
    max: MAX_CACHED,
  });
  const absent = new LRUCache<string, true>({ max: MAX_ABSENT, ttl: UNKNOWN_CACHE_MS });
  const lookUps = new Map<string, Promise<string | undefined>>();
  let warnedAtMs = Number.NEGATIVE_INFINITY;
  const keep = (appId: string, cell: string): void =>
    void placed.set(appId, { cell, untilMs: performance.now() + CACHE_MS });
  const lookUp = async (appId: string): Promise<string | undefined> => {
    try {
      const cell = await directory.find(appId);
      const proved = placed.get(appId)?.cell;
      if (cell === undefined) absent.set(appId, true);
      if (cell !== undefined || proved !== undefined) keep(appId, cell ?? proved!);
      return cell ?? proved;
    } catch (err) {
      if (performance.now() - warnedAtMs >= WARN_EVERY_MS) {
        warnedAtMs = performance.now();
        log.warn({ err }, 'the directory of cells is unavailable');
      }
      throw cellUnavailable('the directory of apps is unavailable');
    } finally {
      lookUps.delete(appId);
    }
  };
  const begin = (appId: string): Promise<string | undefined> => {
    const begun = lookUps.get(appId) ?? lookUp(appId);
    lookUps.set(appId, begun);
    return begun;
  };
  return {
    keep(appId, cell) {
      if (!placed.has(appId)) keep(appId, cell);
    },
    cached(appId) {
      const known = placed.get(appId);
      const isOld = known !== undefined && performance.now() >= known.untilMs;
      if (isOld && lookUps.size < MAX_LOOK_UPS) begin(appId).catch(() => undefined);
      return known?.cell;
    },
    findAgain: (appId) => begin(appId),
    knowsAny: () => placed.size > 0,
    async find(appId) {
      if (!appIds.test(appId) || absent.has(appId)) return undefined;
      if (lookUps.size >= MAX_LOOK_UPS && !lookUps.has(appId))
        throw cellUnavailable('the directory of apps has too many look-ups in progress');
      return await begin(appId);
    },
  };
}
