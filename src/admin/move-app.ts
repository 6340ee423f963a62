import { CompiledQuery, type Kysely } from 'kysely';
import { systemClock } from '../adapters/runtime.ts';
import type { CellSettings, CellsSettings } from '../config/cells.ts';
import { ConfigError, readCells } from '../config/config.ts';
import { StartError } from '../config/start-error.ts';
import { recordChange } from '../domain/access/operators/operator.ts';
import { getSignedCheckpoint } from '../domain/base/audit/audit-tree.ts';
import type { MoveState } from '../domain/base/processes/server-processes.ts';
import { entities } from '../domain/tables.ts';
import type { UnitContext } from '../ports/operation-context.ts';
import { inUnitOf, unitsOf } from '../server/unit-of-work.ts';
import {
  type Ask,
  dropTakenRows,
  putRows,
  putSharedRows,
  rewindPositions,
  tablesThatDiffer,
  takeRows,
} from '../storage/app-rows.ts';
import type { CellDirectory } from '../storage/cell-directory.ts';
import { isDatabaseCollision } from '../storage/database-errors.ts';
import { openDatabase } from '../storage/open-database.ts';
import { commandLine, requireMigrated } from './administration.ts';
import { withDirectory } from './cells.ts';
import {
  findMove,
  lockMove,
  lockMoves,
  onItsWay,
  readMove,
  type Side,
  type StoredMove,
  setState,
  take,
} from './take-app.ts';

/*
 * A move has these steps. Each is one transaction, and a move that was interrupted continues with the next one.
 *
 * 1. Drain: a row in `app_moves` of the old cell tells all servers. They refuse requests for the app, pause the jobs of
 *    the cell, and store in their heartbeats that they have (`src/compose/cells/departures.ts`). A process that does not
 *    hear of it in time serves the app no longer either, because its heartbeats have stopped.
 * 2. Take: all rows of the app go from their tables into `moved_rows`, in the old cell. Nobody can use them there. From
 *    here on, the jobs of the cell go on.
 * 3. Put: all rows come into the tables of the new cell, are compared with the taken ones, and the move is noted in
 *    `app_moves`. With this commit, the app lives in the new cell. Before it, the move can be aborted.
 * 4. Place: the directory names the new cell.
 * 5. Finish: the taken rows are deleted. The old cell keeps its row in `app_moves`, so that its servers refuse the app.
 *
 * INVARIANT: at any time, at most one cell has rows of the app in their tables.
 */

/** The steps that a move has completed. */
export type MoveStep = 'drained' | 'taken' | 'put' | 'placed' | 'finished';

export interface MoveOptions {
  readonly appId: string;
  /** The name of the new cell. */
  readonly to: string;
  /** The cells of the deployment. Default: those of the cells file. */
  readonly cells?: CellsSettings;
  /** Called after each step. Tests stop the move here. */
  readonly onStep?: (step: MoveStep) => void | Promise<void>;
  /** Called with the number of rows that have been copied. */
  readonly onProgress?: (rows: number) => void;
}

/** A completed move, as the command prints it. */
export interface MovedApp {
  readonly app_id: string;
  readonly from: string;
  readonly to: string;
  readonly rows: number;
  /** How long requests for the app were refused, as far as this command has caused it. */
  readonly refused_ms: number;
}

/**
 * Moves an app and everything that belongs to it to another cell. After a failure, call it again to continue.
 *
 * @throws ConfigError, StartError
 */
export function moveApp(options: MoveOptions): Promise<MovedApp> {
  const { appId, to, onStep = () => undefined, onProgress = () => undefined } = options;
  return withSides(options, async ({ from, target, directory, isPlaced }) => {
    const startedMs = performance.now();
    let move = await findMove(from, appId);
    if (isPlaced && move?.state !== 'taken') {
      await removeRestored(from, target, appId);
      return { app_id: appId, from: from.name, to, rows: 0, refused_ms: 0 };
    }
    if (move?.state !== 'taken') {
      move = await take(from, target, { appId, onDrained: () => onStep('drained') });
      await onStep('taken');
    } else if (move.other_cell !== to) throw onItsWay(appId, move);
    const rows = await put(from, target, { appId, move, onProgress }).catch((error: unknown) =>
      refusedSince(error, 'run the same command again, or give up the move with --abort'),
    );
    await onStep('put');
    if (!isPlaced) {
      const isMoved = await directory
        .move({ app_id: appId, from: from.name, to })
        .catch((error: unknown) => refusedSince(error, 'run the same command again'));
      if (!isMoved)
        throw new StartError(
          `the directory places the app \`${appId}\` in a third cell: set its entry to \`${to}\`, which has the rows, and run the same command again`,
        );
    }
    await onStep('placed');
    const refusedMs = Math.round(performance.now() - startedMs);
    await finish(from, target, appId, move);
    await onStep('finished');
    return { app_id: appId, from: from.name, to, rows, refused_ms: refusedMs };
  });
}

/**
 * Gives up a move that was interrupted: the app stays in its cell.
 *
 * @param given `to` may be omitted, unless the directory names the new cell already.
 * @throws ConfigError; StartError if the app is in the new cell already, or is not on its way.
 */
export async function abortMove(
  given: Pick<MoveOptions, 'appId' | 'cells'> & { readonly to?: string | undefined },
): Promise<{ readonly app_id: string; readonly cell: string }> {
  const { appId } = given;
  const to = given.to ?? (await destinationOf(given));
  return withSides({ ...given, to }, async ({ from, target, directory, isPlaced }) => {
    const move = await findMove(from, appId);
    if (move === undefined || (move.state !== 'draining' && move.state !== 'taken') || move.other_cell !== to)
      throw new StartError(`the app \`${appId}\` is not on its way to the cell \`${to}\``);
    // Waits for a command that is just about to commit the rows in the new cell, before other moves have to wait.
    await from.transact((ask) => lockMove(ask, appId, move, ['draining', 'taken']));
    await from.transact(async (ask) => {
      // A command that takes the rows right now must end first.
      await lockMoves(ask);
      if (!(await lockMove(ask, appId, move, ['draining', 'taken']))) throw otherCommand(appId);
      const decided = await target.transact(async (write) => {
        const arrival = { appId, moveId: move.move_id, otherCell: from.name, state: 'refused' } as const;
        const before = await claimArrival(write, arrival);
        if (before === undefined) await setState(write, appId, 'refused');
        return before;
      });
      if (decided === 'arrived')
        throw new StartError(
          `the app \`${appId}\` is in the cell \`${to}\` already; repeat the move to finish it`,
        );
      await putRows({ from: ask, to: ask, appId, isElsewhere: false, onProgress: () => undefined });
      await dropTakenRows(ask, appId);
      await setState(ask, appId, 'aborted');
    });
    // The new cell was restored to a time before the rows came.
    if (isPlaced) await directory.move({ app_id: appId, from: to, to: from.name });
    return { app_id: appId, cell: from.name };
  });
}

/** Returns the cell to which an app is on its way, as its old cell has it. */
async function destinationOf({
  appId,
  cells: deployment = readCells(),
}: Pick<MoveOptions, 'appId' | 'cells'>) {
  const { cells, directoryUrl } = deployment;
  const placed = directoryUrl && (await withDirectory(directoryUrl, (directory) => directory.find(appId)));
  const cell = cells.find(({ name }) => name === (placed ?? cells[0].name));
  if (cell !== undefined) {
    const side = await openSide(cell);
    const move = await findMove(side, appId).finally(() => side.database.close());
    if (move?.state === 'draining' || move?.state === 'taken') return move.other_cell;
  }
  throw new StartError(`the app \`${appId}\` is not on its way to another cell`);
}

const otherCommand = (appId: string): StartError =>
  new StartError(`another command works on the move of the app \`${appId}\`: run this one again`);

/** Tells the operator what to do after a failure, from which on the app is served by no cell. */
function refusedSince(error: unknown, advice: string): never {
  if (error instanceof StartError) throw error;
  const reason = error instanceof Error ? error.message : String(error);
  throw new StartError(`the app is refused until the move goes on: ${advice} (${reason})`, { cause: error });
}

interface Sides {
  readonly from: Side;
  readonly target: Side;
  readonly directory: CellDirectory;
  /** Whether the directory names the new cell already. */
  readonly isPlaced: boolean;
}

async function withSides<T>(
  { appId, to, cells: deployment = readCells() }: MoveOptions,
  work: (sides: Sides) => Promise<T>,
): Promise<T> {
  const { cells, directoryUrl } = deployment;
  const names = cells.map(({ name }) => `\`${name}\``).join(', ');
  const targetCell = cells.find(({ name }) => name === to);
  if (directoryUrl === undefined || targetCell === undefined)
    throw new ConfigError('invalid option:', [`--to: expected one of ${names}`]);
  return withDirectory(directoryUrl, async (directory) => {
    const placed = (await directory.find(appId)) ?? cells[0].name;
    const isPlaced = placed === to;
    const fromCell = isPlaced
      ? await cellThatMoves(
          cells.filter((cell) => cell !== targetCell),
          appId,
          to,
        )
      : cells.find(({ name }) => name === placed);
    if (fromCell === undefined)
      throw new StartError(`the cell \`${placed}\` of the app is not in the cells file`);
    const opened: Side[] = [];
    try {
      for (const cell of [fromCell, targetCell]) opened.push(await openSide(cell));
      const [from, target] = opened as [Side, Side];
      return await work({ from, target, directory, isPlaced });
    } finally {
      await Promise.all(opened.map(({ database }) => database.close()));
    }
  });
}

/**
 * Finds the cell from which the app has come, and which is not told so yet; or else one that has rows of the app, because
 * it was restored from a backup from before the move.
 */
async function cellThatMoves(
  cells: readonly CellSettings[],
  appId: string,
  to: string,
): Promise<CellSettings> {
  for (const cell of cells) {
    const side = await openSide(cell);
    try {
      const move = await findMove(side, appId);
      if (move?.state === 'taken' && move.other_cell === to) return cell;
      if (await side.transact((ask) => hasApp(ask, appId))) return cell;
    } finally {
      await side.database.close();
    }
  }
  throw new StartError(`the app \`${appId}\` is in the cell \`${to}\` already`);
}

const hasApp = async (ask: Ask, appId: string): Promise<boolean> =>
  (await ask('select 1 as found from apps where id = $1', [appId])).length > 0;

async function openSide({ name, databaseUrl: url }: CellSettings): Promise<Side> {
  const database = await openDatabase(entities, { kind: 'postgres', url, poolSize: 2, timeouts: 'none' });
  const inUnit = inUnitOf(unitsOf(database));
  try {
    await requireMigrated(database);
  } catch (error) {
    await database.close();
    throw error;
  }
  return {
    ...{ name, database },
    transact: (work) =>
      retryingCollisions(() =>
        inUnit((em, notes) => {
          const connection = em.getTransactionContext<Kysely<unknown>>()!;
          const ask: Ask = async <Row extends object>(text: string, values: readonly unknown[] = []) =>
            (await connection.executeQuery(CompiledQuery.raw(text, [...values]))).rows as Row[];
          return work(ask, { em, notes });
        }),
      ),
  };
}

const ATTEMPTS = 3;

/** Runs a transaction again if PostgreSQL ended it for another one, such as that of a second command or of a job. */
async function retryingCollisions<T>(transaction: () => Promise<T>): Promise<T> {
  for (let attempt = 1; ; attempt += 1) {
    try {
      return await transaction();
    } catch (error) {
      if (attempt === ATTEMPTS || !isDatabaseCollision(error)) throw error;
    }
  }
}

/**
 * Stores in the new cell that the app comes, or does not come, by this move. Waits for another command that does.
 *
 * @returns what was stored before for this move; undefined if nothing was.
 */
async function claimArrival(
  ask: Ask,
  move: { appId: string; moveId: string; otherCell: string; state: 'arrived' | 'refused' },
): Promise<MoveState | undefined> {
  const claimed = await ask(
    `insert into app_moves as known (app_id, number, state, move_id, other_cell, changed_at_ms)
     values ($1, 0, $2, $3, $4, $5)
     on conflict (app_id) do update set state = excluded.state, move_id = excluded.move_id,
       other_cell = excluded.other_cell, changed_at_ms = excluded.changed_at_ms
     where known.move_id <> excluded.move_id returning app_id`,
    [move.appId, move.state, move.moveId, move.otherCell, systemClock.now()],
  );
  return claimed.length > 0 ? undefined : (await readMove(ask, move.appId))?.state;
}

/** Puts the taken rows into the new cell, unless they are there already. Returns their number. */
function put(
  from: Side,
  target: Side,
  { appId, move, onProgress }: { appId: string; move: StoredMove; onProgress: (rows: number) => void },
): Promise<number> {
  const arrival = { appId, moveId: move.move_id, otherCell: from.name, state: 'arrived' } as const;
  return from.transact(async (read, { em }) => {
    if (!(await lockMove(read, appId, move, ['taken']))) throw otherCommand(appId);
    return target.transact(async (write, unit) => {
      const decided = await claimArrival(write, arrival);
      if (decided === 'arrived') return 0;
      if (decided !== undefined)
        throw new StartError(
          `the move of the app \`${appId}\` was being aborted: run the command again with --abort`,
        );
      // An earlier move out of the new cell may have left rows behind, if its last step never ran.
      await dropTakenRows(write, appId);
      const sides = { from: read, to: write, appId };
      const rows = await putRows({ ...sides, isElsewhere: true, onProgress });
      const [differing] = await tablesThatDiffer(sides);
      if (differing !== undefined)
        throw new StartError(`the copy of the table \`${differing}\` differs; nothing was moved`);
      await putSharedRows(sides);
      await rewindPositions(sides);
      await recordMove(unit, {
        appId,
        from: from.name,
        to: target.name,
        other: await getSignedCheckpoint(em),
      });
      await setState(write, appId, 'arrived');
      return rows;
    });
  });
}

async function finish(from: Side, target: Side, appId: string, move: StoredMove): Promise<void> {
  const other = await target.transact((_, { em }) => getSignedCheckpoint(em));
  await from.transact(async (ask, unit) => {
    await lockMoves(ask);
    // Otherwise another command has finished this move, and the rows may be those of a later one.
    if (!(await lockMove(ask, appId, move, ['taken']))) return;
    await dropTakenRows(ask, appId);
    if (await setState(ask, appId, 'moved', 'taken'))
      await recordMove(unit, { appId, from: from.name, to: target.name, other });
  });
}

/** Removes an app from a cell that was restored from a backup from before the move. The directory decides. */
async function removeRestored(from: Side, target: Side, appId: string): Promise<void> {
  if (!(await target.transact((ask) => hasApp(ask, appId))))
    throw new StartError(
      `the directory places the app \`${appId}\` in the cell \`${target.name}\`, which does not have it; the cell \`${from.name}\` does`,
    );
  const other = await target.transact((_, { em }) => getSignedCheckpoint(em));
  await from.transact(async (ask, unit) => {
    const number = await lockMoves(ask);
    await takeRows(ask, appId);
    await dropTakenRows(ask, appId);
    await ask(
      `insert into app_moves as known (app_id, number, state, move_id, other_cell, changed_at_ms)
       values ($1, $2, 'moved', $3, $4, $5)
       on conflict (app_id) do update set number = excluded.number, state = excluded.state`,
      [appId, number, `${number}-restored`, target.name, systemClock.now()],
    );
    await recordMove(unit, { appId, from: from.name, to: target.name, other });
  });
}

/** Records the move in the audit log of one cell, with the checkpoint of the other one. */
function recordMove(
  { em, notes }: UnitContext,
  { appId, from, to, other }: { appId: string; from: string; to: string; other: string | undefined },
): Promise<void> {
  const [origin = '', size = '', root = ''] = other?.split('\n') ?? [];
  const targets = { from, to, other_origin: origin, other_size: size, other_root: root };
  return recordChange(
    { em, notes, nowMs: systemClock.now(), by: commandLine },
    { appId, action: 'app.moved', targets },
  );
}
