import assert from 'node:assert/strict';
import type { AdjustableClock } from '../adapters/runtime.ts';
import { ConfigError } from '../config/config.ts';
import type { ConfigFile } from '../config/config-file.ts';
import type { StoredAppDirectory } from '../domain/access/apps/app.ts';
import type { StoredAuditTrail } from '../domain/base/audit/audit-log.ts';
import { newestSequence } from '../domain/base/events/events.ts';
import type { JobRunner } from '../jobs/runner.ts';
import type { SandboxKeyStore } from '../keys/sandbox-keys.ts';
import type { UseLog } from '../ports/requests.ts';
import type { Clock } from '../ports/runtime.ts';
import type { FaultRules } from '../sandbox/faults/fault-rules.ts';
import type { SimulatedChains } from '../sandbox/simulated/chains/simulated-chains.ts';
import { chainStoreSteps } from '../sandbox/simulated/chains/store-schema.ts';
import type { SchemaVersions, Snapshot, SnapshotState } from '../sandbox/snapshot-file.ts';
import { migrations } from '../storage/migrations/migrations.ts';
import { type Database, resetDatabase } from '../storage/open-database.ts';
import type { DeclaredWorld, WorldChange } from './declared-world.ts';
import { beginLoading, endLoading } from './load-into-folder.ts';
import type { RequestGate } from './request-gate.ts';
import type { SandboxEntropy } from './sandbox-entropy.ts';
import type { EventLog, SandboxMemory } from './sandbox-memory.ts';
import { ensureSeeds, plantSeeds, type Seeds } from './seeds.ts';

/** A provider that can be taken out of service. */
interface Service {
  isUp(): boolean;
  setUp(isUp: boolean): void;
}

/** Everything that saving, loading and resetting the state of a sandbox needs. */
export interface StatefulParts {
  readonly dataFolder: string | undefined;
  readonly version: string;
  readonly memory: SandboxMemory;
  readonly database: Database;
  readonly chains: SimulatedChains;
  readonly keyStore: SandboxKeyStore;
  readonly clock: AdjustableClock;
  readonly machine: Clock;
  readonly randomness: SandboxEntropy;
  readonly fiat: Service;
  readonly cards: Service;
  readonly uses: UseLog;
  readonly apps: Pick<StoredAppDirectory, 'noteChange'>;
  readonly trail: Pick<StoredAuditTrail, 'open'>;
  readonly eventLog: EventLog;
  readonly seeds: Seeds;
  readonly jobs: Pick<JobRunner, 'whilePaused'>;
  readonly gate: RequestGate;
  readonly faults: Pick<FaultRules, 'restart'>;
}

export interface WholeState {
  /** Saves a snapshot of the current state. It contains everything that was acknowledged before. */
  save(): Promise<Snapshot>;
  /** Replaces the state with that of a snapshot. A sandbox with a data folder moves the snapshot's file there. */
  load(snapshot: Snapshot, file: string | undefined): Promise<void>;
  /** Resets to the state after the start. */
  reset(): Promise<void>;
  /** Makes later resets return to the current state. */
  keepStart(): Promise<void>;
  /** Makes the next reset return to nothing but freshly created seed data. */
  forgetStart(): void;
}

/** The number of schema migrations in this version. */
export const schema: SchemaVersions = { database: migrations.length, chains: chainStoreSteps.length };

/**
 * Saves and replaces the state of a sandbox, while requests wait and jobs are paused.
 *
 * @param first whether the current state is the one to which a reset returns, because the data is new or was loaded
 * at the start.
 */
export async function wholeState(parts: StatefulParts, first: boolean): Promise<WholeState> {
  const { gate, jobs, randomness } = parts;
  const start = startOf(randomness);
  let pristine = first ? await capture(parts) : undefined;
  return {
    save: () => gate.whileHeld(() => jobs.whilePaused(() => capture(parts), { mustForget: false })),
    load: (snapshot, file) =>
      gate.whileHeld(async () => {
        const { dataFolder } = parts;
        const before = await jobs.whilePaused(() => capture(parts), { mustForget: false });
        if (dataFolder !== undefined) {
          assert(file !== undefined, 'expected a file in the folder');
          beginLoading(dataFolder, file, isOwn(parts, snapshot));
        }
        try {
          await replace(parts, async () => {
            await restore(parts, snapshot);
            // The current credentials of this sandbox stay valid.
            await ensureSeeds(parts.seeds);
          });
        } catch (error) {
          // If the snapshot cannot be loaded, the sandbox returns to its previous state.
          await replace(parts, () => restore(parts, before));
          if (dataFolder !== undefined) endLoading(dataFolder);
          throw error;
        }
        keepKey(parts, snapshot);
        if (dataFolder !== undefined) endLoading(dataFolder);
      }),
    reset: () =>
      gate.whileHeld(async () => {
        await replace(parts, () =>
          pristine === undefined ? resetToSeeds(parts, start) : restore(parts, pristine),
        );
        if (pristine !== undefined) keepKey(parts, pristine);
        pristine ??= await capture(parts);
      }),
    async keepStart() {
      pristine = await gate.whileHeld(() => jobs.whilePaused(() => capture(parts), { mustForget: false }));
    },
    forgetStart() {
      pristine = undefined;
    },
  };
}

/** Returns the positions at the beginning of the random streams, even if data was stored before this start. */
function startOf(randomness: SandboxEntropy): SnapshotState['entropy'] {
  const positions = randomness.position();
  if (positions === null) return null;
  const { main, requests, faults, phrases } = positions;
  return {
    main: { ...main, drawn: 0 },
    requests: { ...requests, drawn: 0 },
    faults: { ...faults, drawn: 0 },
    ...(phrases === undefined ? {} : { phrases: { ...phrases, drawn: 0 } }),
  };
}

async function capture(parts: StatefulParts): Promise<Snapshot> {
  const { memory, clock, randomness, fiat, cards, database, chains } = parts;
  await parts.uses.flush();
  const image = await database.images!.save();
  return {
    version: parts.version,
    schema,
    savedAtMs: parts.machine.now(),
    nowMs: clock.now(),
    state: {
      ...{ appId: memory.state.appId, appSecret: memory.state.appSecret },
      masterKeyHex: memory.state.masterKeyHex,
      // CHOICE: a running clock is saved as its difference from the system clock. So a clock that was never moved
      // still shows the system time after a snapshot is loaded, as it does after a restart.
      clock: clock.state(),
      entropy: randomness.position(),
      ...{ isFiatUp: fiat.isUp(), areCardsUp: cards.isUp() },
    },
    database: image,
    chains: await chains.image(),
  };
}

/** Runs work that replaces the databases, while nothing else uses them. */
async function replace(parts: StatefulParts, work: () => Promise<void>): Promise<void> {
  const { jobs, uses, apps, eventLog, database } = parts;
  await jobs.whilePaused(
    async () => {
      await uses.flush();
      await work();
      // CHOICE: snapshots contain no fault rules. Loading one removes all rules that were added.
      parts.faults.restart();
      apps.noteChange();
      await parts.trail.open();
      eventLog.restart(await newestSequence(database.orm.em.fork()));
    },
    { mustForget: true },
  );
}

async function restore(parts: StatefulParts, snapshot: Snapshot): Promise<void> {
  const { database, chains, keyStore } = parts;
  await database.images!.load(snapshot.database);
  await chains.load(snapshot.chains);
  keyStore.use(snapshot.state.masterKeyHex);
  adopt(parts, snapshot.state);
}

/**
 * Stores the master key of a loaded snapshot. Must be done last, because the stored key may be the only copy of the
 * previous key.
 */
function keepKey(parts: StatefulParts, snapshot: Snapshot): void {
  const { masterKeyHex } = snapshot.state;
  if (!isOwn(parts, snapshot)) parts.memory.change({ masterKeyHex });
}

/** Returns whether the snapshot has this sandbox's master key. */
function isOwn({ memory }: Pick<StatefulParts, 'memory'>, { state }: Snapshot): boolean {
  return state.masterKeyHex === memory.state.masterKeyHex;
}

/** Applies the part of a snapshot that is not in its databases. */
export function adopt(
  { clock, randomness, fiat, cards }: Pick<StatefulParts, 'clock' | 'randomness' | 'fiat' | 'cards'>,
  state: SnapshotState,
): void {
  clock.restore(state.clock);
  randomness.goTo(state.entropy);
  fiat.setUp(state.isFiatUp);
  cards.setUp(state.areCardsUp);
}

async function resetToSeeds(parts: StatefulParts, start: SnapshotState['entropy']): Promise<void> {
  const { database, chains, clock, fiat, cards, randomness } = parts;
  await resetDatabase(database);
  await chains.reset();
  clock.reset();
  fiat.setUp(true);
  cards.setUp(true);
  randomness.goTo(start);
  await plantSeeds(parts.seeds);
}

/** Applies the configuration file of a sandbox at its start, after changes, and at resets. */
export interface FileKeeper {
  /**
   * Creates what the file declares. Called after the start; returns the sandbox.
   *
   * @throws ConfigError, which lists every problem, after the sandbox was closed.
   */
  setUp<S extends { close(): Promise<void> }>(declared: DeclaredWorld, sandbox: S): Promise<S>;
  /**
   * Requires that the resources of the file have been created.
   *
   * @throws Error if they have not.
   */
  requireSetUp(): void;
  /** Applies a changed file. */
  apply(file: ConfigFile): Promise<WorldChange>;
  /** Resets to the state after the start, including what the file declares. */
  reset(): Promise<void>;
}

export function keepFile(
  first: ConfigFile | undefined,
  {
    whole,
    isLoaded,
  }: {
    readonly whole: Pick<WholeState, 'reset' | 'keepStart' | 'forgetStart'>;
    /** Whether the sandbox was started with a snapshot, which contains more than the seed data. */
    readonly isLoaded: boolean;
  },
): FileKeeper {
  let file = first;
  let declared: DeclaredWorld | undefined;
  let isSetUp = first === undefined;
  let last: Promise<unknown> = Promise.resolve();
  /** Runs one piece of work at a time, because a reset would remove what a change of the file is just creating. */
  const inTurn = <T>(work: () => Promise<T>): Promise<T> => {
    const next = last.then(work);
    last = next.catch(() => undefined);
    return next;
  };
  const apply = async (): Promise<readonly string[]> => {
    if (file === undefined || declared === undefined) return [];
    const { applied, faults } = await declared.apply(file);
    if (applied.some((text) => !text.startsWith('/faults/'))) await whole.keepStart();
    return faults;
  };
  return {
    async setUp(given, sandbox) {
      declared = given;
      const faults = await apply();
      isSetUp = faults.length === 0;
      if (isSetUp) return sandbox;
      await sandbox.close();
      throw new ConfigError(`${file?.name} cannot be used:`, faults);
    },
    requireSetUp() {
      if (!isSetUp) throw new Error('the resources of the configuration file are being created');
    },
    apply: (changed) =>
      inTurn(async () => {
        file = changed;
        const change = await declared!.apply(changed);
        if (!isLoaded) whole.forgetStart();
        return change;
      }),
    reset: () =>
      inTurn(async () => {
        await whole.reset();
        await apply();
      }),
  };
}
