import { setTimeout as pause } from 'node:timers/promises';
import { makeIds, systemClock, systemEntropy } from '../adapters/runtime.ts';
import { StartError } from '../config/start-error.ts';
import type { MoveState } from '../domain/base/processes/server-processes.ts';
import type { UnitContext } from '../ports/operation-context.ts';
import { type Ask, tablesWithRows, takeRows } from '../storage/app-rows.ts';
import type { Database } from '../storage/open-database.ts';

// The first steps of a move (`move-app.ts`): servers stop their work on the app, and its rows are taken.

/** CHOICE: how long a move waits for servers to stop their work on the app. A webhook may take 30 seconds. */
const DRAIN_MS = 90_000;
const POLL_MS = 200;
/** CHOICE: how long a move waits until all servers are registered in both cells. Nothing is refused meanwhile. */
const SERVERS_MS = 20_000;
/** How often a move shows that it goes on. Servers wait for 30 seconds. */
const RENEW_MS = 5_000;
const ATTEMPTS = 3;

/** A cell that takes part in a move. */
export interface Side {
  readonly name: string;
  readonly database: Database;
  /** Runs work in one transaction. */
  transact<T>(work: (ask: Ask, unit: UnitContext) => Promise<T>): Promise<T>;
}

export interface StoredMove {
  readonly state: MoveState;
  readonly move_id: string;
  readonly other_cell: string;
}

/** Thrown when servers worked on the app again while its rows were taken. */
class DisturbedError extends Error {
  constructor(message: string) {
    super(message);
    this.name = 'DisturbedError';
  }
}

/** Thrown when a transaction in the old cell does not end. */
class OpenTransactionError extends StartError {
  constructor(ids: readonly string[]) {
    super(
      `transactions in its cell stay open: wait for their end, or end their processes, and run the same command again (in pg_stat_activity: ${ids.join(', ')})`,
    );
    this.name = 'OpenTransactionError';
  }
}

export const findMove = (side: Side, appId: string): Promise<StoredMove | undefined> =>
  side.transact((ask) => readMove(ask, appId));

export async function readMove(ask: Ask, appId: string): Promise<StoredMove | undefined> {
  const [move] = await ask<StoredMove>('select state, move_id, other_cell from app_moves where app_id = $1', [
    appId,
  ]);
  return move;
}

export function onItsWay(appId: string, { other_cell: other }: StoredMove): StartError {
  return new StartError(
    `the app \`${appId}\` is on its way to the cell \`${other}\`; finish that move, or abort it with --abort`,
  );
}

/**
 * Locks a move until the transaction ends, so that no other command finishes or aborts it. Returns false if another
 * command has done so, or has begun a new one.
 */
export async function lockMove(
  ask: Ask,
  appId: string,
  { move_id: moveId }: StoredMove,
  states: readonly MoveState[],
): Promise<boolean> {
  const found = await ask(
    'select 1 as found from app_moves where app_id = $1 and move_id = $2 and state = any($3) for update',
    [appId, moveId, states],
  );
  return found.length > 0;
}

/**
 * Locks the moves of a cell until the transaction ends, so that their numbers become visible in their order, and no server
 * misses one. Returns the next number.
 */
export async function lockMoves(ask: Ask): Promise<string> {
  await ask(`select pg_advisory_xact_lock(hashtextextended('moves of apps' || current_schema(), 0))`);
  // After a restore of the database, numbers must not begin again: servers know higher ones. So they follow the clock.
  const [row] = await ask<{ next: string }>(
    'select greatest(max(number) + 1, (extract(epoch from clock_timestamp()) * 1000)::bigint)::text as next from app_moves',
  );
  return row!.next;
}

/** Changes the state of a move. Returns false if it does not have the expected one. */
export async function setState(
  ask: Ask,
  appId: string,
  state: MoveState,
  expected?: MoveState,
): Promise<boolean> {
  const changed = await ask(
    `update app_moves set number = $2, state = $3, changed_at_ms = $4
     where app_id = $1 and state = coalesce($5, state) returning app_id`,
    [appId, await lockMoves(ask), state, systemClock.now(), expected ?? null],
  );
  return changed.length > 0;
}

/** Takes the rows of the app out of their tables. */
export async function take(
  from: Side,
  target: Side,
  { appId, onDrained }: { readonly appId: string; readonly onDrained: () => void | Promise<void> },
): Promise<StoredMove> {
  await requireServersOfBoth(from, target);
  if (await target.transact(async (ask) => (await tablesWithRows(ask, appId)).length > 0))
    throw new StartError(`the cell \`${target.name}\` has rows of the app \`${appId}\`; see docs/scale.md`);
  // Such as a backup. Nothing is refused yet, so this wait costs nobody anything.
  await waitForTransactions(from);
  for (let attempt = 1; ; attempt += 1) {
    const { move, number } = await beginDraining(from, target.name, appId);
    const renewal = setInterval(() => {
      // If it fails, the servers stop to wait, and the step is repeated.
      from.transact((ask) => renew(ask, appId)).catch(() => undefined);
    }, RENEW_MS);
    try {
      const drained = await waitUntilDrained(from, appId, number);
      await waitForTransactions(from);
      await onDrained();
      await from.transact(async (ask) => {
        // If the command is suspended or its machine is gone, this ends before servers serve the app again.
        await ask(`set local idle_in_transaction_session_timeout = '10s'`);
        await requireOnly(ask, appId);
        await takeRows(ask, appId);
        await requireUndisturbed(ask, appId, drained);
        if (!(await setState(ask, appId, 'taken', 'draining')))
          throw new StartError(
            `another command has continued or aborted the move of the app \`${appId}\`: run this one again`,
          );
      });
      return { ...move, state: 'taken' };
    } catch (error) {
      const isFinal = error instanceof OpenTransactionError || attempt === ATTEMPTS;
      if (!isFinal && error instanceof DisturbedError) continue;
      if (error instanceof DisturbedError || error instanceof OpenTransactionError) {
        await from.transact((ask) => setState(ask, appId, 'aborted', 'draining'));
        throw new StartError(`the app \`${appId}\` stays where it is: ${error.message}`);
      }
      throw error;
    } finally {
      clearInterval(renewal);
    }
  }
}

/**
 * Requires that every server of the old cell also serves the new one. Waits for servers that start just now, and until
 * killed ones are noticed.
 */
async function requireServersOfBoth(from: Side, target: Side): Promise<void> {
  for (const endMs = performance.now() + SERVERS_MS; ; await pause(POLL_MS)) {
    const [ofOld, ofNew] = await Promise.all([from, target].map((side) => side.transact(processesOf)));
    const missing = ofOld!.filter(({ id }) => !ofNew!.some((other) => other.id === id));
    if (missing.length === 0) return;
    if (performance.now() < endMs) continue;
    throw new StartError(
      `the server processes ${missing.map(({ id }) => `\`${id}\``).join(', ')} serve the cell \`${from.name}\`, but not \`${target.name}\`: restart them with the current cells file`,
    );
  }
}

interface ServerProcess {
  readonly id: string;
  readonly drained_move: string;
}

const processesOf = (ask: Ask): Promise<readonly ServerProcess[]> =>
  ask<ServerProcess>('select id, drained_move::text from server_processes');

async function beginDraining(
  from: Side,
  otherCell: string,
  appId: string,
): Promise<{ readonly move: StoredMove; readonly number: number }> {
  return from.transact(async (ask) => {
    const number = await lockMoves(ask);
    const moves = await ask<StoredMove & { app_id: string }>(
      `select app_id, state, move_id, other_cell from app_moves where app_id = $1 or state = 'draining'`,
      [appId],
    );
    const other = moves.find((each) => each.app_id !== appId);
    if (other !== undefined)
      throw new StartError(`the app \`${other.app_id}\` is leaving the cell: finish or abort its move first`);
    const known = moves.find(({ state }) => state === 'draining');
    if (known !== undefined && known.other_cell !== otherCell) throw onItsWay(appId, known);
    if (!(await ask('select 1 as found from apps where id = $1', [appId])).length)
      throw new StartError(`the cell \`${from.name}\` has no app \`${appId}\``);
    const moveId = known?.move_id ?? `${number}-${makeIds(systemEntropy).cuid()}`;
    await ask(
      `insert into app_moves (app_id, number, state, move_id, other_cell, changed_at_ms)
       values ($1, $2, 'draining', $3, $4, $5)
       on conflict (app_id) do update set number = excluded.number, state = excluded.state,
         move_id = excluded.move_id, other_cell = excluded.other_cell, changed_at_ms = excluded.changed_at_ms`,
      [appId, number, moveId, otherCell, systemClock.now()],
    );
    return {
      move: { state: 'draining', move_id: moveId, other_cell: otherCell },
      number: firstNumberOf(moveId),
    };
  });
}

/** Returns the number that a move had when it began. What a server has drained for an earlier move is another app. */
function firstNumberOf(moveId: string): number {
  return Number(moveId.slice(0, moveId.indexOf('-')));
}

async function renew(ask: Ask, appId: string): Promise<void> {
  await ask(`update app_moves set number = $2 where app_id = $1 and state = 'draining'`, [
    ...[appId, await lockMoves(ask)],
  ]);
}

/**
 * Waits until all servers have stopped their work on the app. Returns the moves that their heartbeats name.
 *
 * @throws StartError
 */
async function waitUntilDrained(
  from: Side,
  appId: string,
  number: number,
): Promise<ReadonlyMap<string, string>> {
  for (const endMs = performance.now() + DRAIN_MS; ; await pause(POLL_MS)) {
    const processes = await from.transact(processesOf);
    const busy = processes.filter((each) => Number(each.drained_move) < number);
    if (busy.length === 0) return new Map(processes.map((each) => [each.id, each.drained_move]));
    // Processes that were killed are removed by the others after some seconds.
    if (performance.now() < endMs) continue;
    await from.transact((ask) => setState(ask, appId, 'aborted', 'draining'));
    const ids = busy.map(({ id }) => `\`${id}\``).join(', ');
    throw new StartError(
      `the app \`${appId}\` stays where it is: the server processes ${ids} still work for it, were killed and no other is left to notice it, or run a version that cannot move apps`,
    );
  }
}

/**
 * Waits for the transactions that began before. A process that stood still may have one of them open, in which it has
 * found the app.
 */
async function waitForTransactions(from: Side): Promise<void> {
  const open = (ask: Ask): Promise<readonly { readonly id: string; readonly pid: number }[]> =>
    ask(
      `select virtualtransaction as id, pid from pg_locks join pg_stat_activity using (pid)
       where locktype = 'virtualxid' and pid <> pg_backend_pid() and datname = current_database()
         and backend_type = 'client backend' and usename = current_user`,
    );
  const before = new Map((await from.transact(open)).map(({ id, pid }) => [id, pid]));
  for (const endMs = performance.now() + DRAIN_MS; before.size > 0; await pause(POLL_MS)) {
    const now = new Set((await from.transact(open)).map(({ id }) => id));
    for (const id of before.keys()) if (!now.has(id)) before.delete(id);
    if (before.size > 0 && performance.now() >= endMs)
      throw new OpenTransactionError([...before.values()].map((pid) => `pid ${pid}`));
  }
}

/** Requires that no other command takes the rows at the same time. */
async function requireOnly(ask: Ask, appId: string): Promise<void> {
  const [lock] = await ask<{ isFree: boolean }>(
    `select pg_try_advisory_xact_lock(hashtextextended('rows of an app' || current_schema() || $1, 0)) as "isFree"`,
    [appId],
  );
  if (lock?.isFree !== true)
    throw new StartError(`another command moves the app \`${appId}\`: wait for its end`);
}

/** @throws DisturbedError when somebody has worked on the app since it was drained. */
async function requireUndisturbed(
  ask: Ask,
  appId: string,
  drained: ReadonlyMap<string, string>,
): Promise<void> {
  // All rows of the app are locked now. A process that still works for it finds none of them.
  for (const { id, drained_move: now } of await processesOf(ask))
    if (now === '0' || now !== (drained.get(id) ?? now))
      throw new DisturbedError(`the server process \`${id}\` did not wait for the move`);
  const [table] = await tablesWithRows(ask, appId);
  if (table !== undefined)
    throw new DisturbedError(`a row was added to the table \`${table}\` during the move`);
}
