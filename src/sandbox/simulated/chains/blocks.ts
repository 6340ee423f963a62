import type { Clock } from '../../../ports/runtime.ts';
import { createMutex } from '../../../storage/mutex.ts';
import type { ChainTerms } from './chain-terms.ts';
import { rollBack } from './ledger.ts';
import type { Block, Execution, Pool, PoolEntry } from './pool.ts';
import type { ChainStore } from './store.ts';

/** The rules by which one kind of chain executes transactions. */
export interface Machine<Plan> {
  /**
   * Returns what to do with a pooled transaction. `waits`: it cannot be executed yet, for example because of a nonce
   * gap. `replaced`: another transaction has used its nonce. `drop`: the sender can no longer pay.
   */
  readiness(entry: PoolEntry<Plan>, nowSeconds: number): 'ready' | 'waits' | 'replaced' | 'drop';
  /**
   * Executes a ready transaction and charges its fee. Stores nothing until the returned function is called, in a
   * transaction of the store. That function stores nothing and returns undefined if the state that the execution has
   * read has changed since.
   */
  execute(entry: PoolEntry<Plan>, block: Block): Promise<() => Execution | undefined>;
  /** Returns the hash of the transaction that used the nonce of a `replaced` transaction. Null if it is unknown. */
  replacementOf(entry: PoolEntry<Plan>): string | null;
}

interface ChainRow {
  base_height: number;
  base_ms: number;
  seen_ms: number;
  height: number;
  next_seconds: number | null;
}

/** Makes the blocks of one chain. */
export interface Blocks {
  /** Processes the blocks that are due at the clock's current time. */
  catchUp(): Promise<void>;
  /** Processes due blocks, then runs `work` in one transaction of the store. */
  atHead<T>(work: () => T): Promise<T>;
  /** Runs `work` in one transaction of the store while no block is being made. */
  exclusively<T>(work: () => T): Promise<T>;
  /** Sets the time of the next block that is mined or contains transactions, in Unix seconds. */
  setNextSeconds(seconds: number): void;
  /** Returns the latest processed block. */
  head(): Block;
  /** Returns the time of a block without transactions, in Unix seconds. */
  secondsOf(blockNumber: number): number;
  /**
   * With true, transactions wait until blocks are mined with `mine`. Ends with false, and when the content of the store
   * is replaced.
   */
  hold(isHeld: boolean): void;
  /** Mines extra blocks immediately. The first one includes every ready transaction. */
  mine(count: number): Promise<Block>;
  /** Returns the time at which a transaction that is received now becomes due for inclusion. */
  dueMs(): number;
  isFinal(blockNumber: number): boolean;
}

interface BlocksOptions<Plan> {
  readonly store: ChainStore;
  readonly caip2: string;
  readonly terms: ChainTerms;
  readonly clock: Clock;
  /**
   * If undefined, a transaction is included in the next block. If set, each transaction gets a block of its own after
   * this delay.
   */
  readonly confirmAfterMs: number | undefined;
  readonly pool: Pool<Plan>;
  readonly machine: Machine<Plan>;
  /** Called before the first transaction of a block. */
  readonly onBlock?: (number: number) => void;
  /** Called in a transaction of the store when the blocks from this number on are abandoned by a reorganization. */
  readonly onAbandoned?: (from: number) => void;
  /** The initial height of a chain that forks a real one. Without it, the height is computed from the clock. */
  readonly firstHeight?: number | undefined;
  /** Called once, when the chain is first used, in a transaction of the store. */
  readonly begin?: (block: Block) => void;
}

/**
 * Creates the block maker of one chain. Block numbers follow the clock: base height + (time since base) / block time.
 * Empty blocks are only counted; only blocks with transactions are processed.
 */
export function makeBlocks<Plan>(options: BlocksOptions<Plan>): Blocks {
  const { store, clock, terms, confirmAfterMs, pool, caip2 } = options;
  const chain = chainRow(options);
  const mutex = createMutex();
  let heldContent: unknown;

  const heightAt = (row: ChainRow, ms: number): number =>
    Math.max(row.height, row.base_height + Math.floor((ms - row.base_ms) / terms.blockMs));

  function makeBlock(row: ChainRow, atMs: number, isExtra: boolean): Block {
    if (isExtra) row.base_height += 1;
    row.height = isExtra ? Math.max(row.height + 1, heightAt(row, atMs)) : heightAt(row, atMs);
    const block = { number: row.height, seconds: row.next_seconds ?? Math.floor(atMs / 1000) };
    if (isExtra || row.next_seconds !== null) noteTime(row, block);
    row.next_seconds = null;
    return block;
  }

  function noteTime({ base_ms, base_height }: ChainRow, { number, seconds }: Block): void {
    const nextMs = base_ms + (number + 1 - base_height) * terms.blockMs;
    store.run('insert or replace into block_times values (?, ?, ?, ?)', caip2, number, seconds, nextMs);
  }

  /** Returns the number that `makeBlock` would assign. */
  const nextNumber = (row: ChainRow, atMs: number, isExtra: boolean): number =>
    heightAt(row, atMs) + (isExtra ? 1 : 0);

  /** Runs work while no other caller makes blocks, because an execution may take several turns of the event loop. */
  async function alone<T>(work: () => Promise<T>): Promise<T> {
    await mutex.acquire();
    try {
      return await work();
    } finally {
      mutex.release();
    }
  }

  const isHeld = (): boolean => heldContent !== undefined && heldContent === store.content();

  async function process(): Promise<ChainRow> {
    const nowMs = clock.now();
    const row = chain.read(nowMs);
    const hasMoved = nowMs !== row.seen_ms;
    if (nowMs < row.seen_ms) {
      // Store the row before blocks are made. If the process were killed in between, pending transactions would
      // otherwise be delayed twice.
      store.atomically(() => {
        rebase(store, caip2, row, nowMs);
        noteTime(row, { number: row.height, seconds: Math.floor(nowMs / 1000) });
        chain.write(row);
      });
    }
    if (hasMoved) {
      const isExtra = confirmAfterMs !== undefined;
      // Make blocks at each time since the last call at which a transaction became due, and at the current time for
      // those that were due earlier and waited, for example for a nonce or their validity window.
      const times = isHeld() ? [] : [...pool.dueTimes(row.seen_ms, nowMs), nowMs];
      for (const atMs of new Set(times)) await fill(row, { untilMs: atMs, atMs, isExtra });
      row.height = heightAt(row, nowMs);
      row.seen_ms = nowMs;
      chain.write(row);
    } else if (confirmAfterMs === 0 && !isHeld()) {
      if (await fill(row, { untilMs: nowMs, atMs: nowMs, isExtra: true })) chain.write(row);
    }
    return row;
  }

  function fill(row: ChainRow, block: { untilMs: number; atMs: number; isExtra: boolean }): Promise<boolean> {
    const { untilMs, atMs, isExtra } = block;
    // While blocks are made, the stored height stays that of their parent. The number of extra blocks is stored
    // together with each transaction, so that no block number is assigned twice if the process is killed.
    const { height } = row;
    return fillBlock(options, {
      ...{ untilMs, atMs, next: nextNumber(row, atMs, isExtra) },
      makeBlock: () => makeBlock(row, atMs, isExtra),
      write: () => chain.write({ ...row, height }),
    });
  }

  async function mine(count: number): Promise<Block> {
    const row = await process();
    const parent = { ...row };
    let block = makeBlock(row, row.seen_ms, true);
    const first = block;
    await fillBlock(options, {
      ...{ untilMs: Number.MAX_SAFE_INTEGER, atMs: row.seen_ms, next: first.number },
      makeBlock: () => first,
      write: () => chain.write({ ...row, height: parent.height }),
    });
    // The remaining blocks have the same time, so they are only counted.
    if (count > 1) {
      row.height += count - 1;
      row.base_height += count - 1;
      block = { ...first, number: row.height };
      noteTime(row, block);
    }
    chain.write(row);
    return block;
  }

  const catchUp = (): Promise<void> => alone(async () => void (await process()));
  const read = (): ChainRow => chain.read(clock.now());
  return {
    catchUp,
    async atHead(work) {
      await catchUp();
      return store.atomically(work);
    },
    head() {
      const row = read();
      return { number: row.height, seconds: Math.floor(row.seen_ms / 1000) };
    },
    secondsOf(blockNumber) {
      const near = (order: string) =>
        store.first<Block & { next_ms: number }>(
          `select number, seconds, next_ms from block_times where caip2 = ? and number ${order} limit 1`,
          ...[caip2, blockNumber],
        );
      const before = near('<= ? order by number desc') ?? { number: -1, seconds: 0, next_ms: 0 };
      if (before.number === blockNumber) return before.seconds;
      const after = near('> ? order by number')?.seconds ?? Math.floor(read().seen_ms / 1000);
      const ms = before.next_ms + (blockNumber - before.number - 1) * terms.blockMs;
      return Math.min(Math.floor(ms / 1000), after);
    },
    hold(isWanted) {
      heldContent = isWanted ? store.content() : undefined;
    },
    mine: (count) => alone(() => mine(count)),
    exclusively: (work) => alone(async () => store.atomically(work)),
    setNextSeconds: (seconds) => chain.write({ ...read(), next_seconds: seconds }),
    dueMs() {
      const row = read();
      if (confirmAfterMs !== undefined) return row.seen_ms + confirmAfterMs;
      const elapsed = row.seen_ms - row.base_ms;
      return row.base_ms + (Math.floor(elapsed / terms.blockMs) + 1) * terms.blockMs;
    },
    isFinal: (blockNumber) => read().height - blockNumber >= terms.finalityBlocks,
  };
}

function chainRow({
  store,
  caip2,
  terms,
  begin,
  firstHeight,
}: Pick<BlocksOptions<never>, 'store' | 'caip2' | 'terms' | 'begin' | 'firstHeight'>) {
  return {
    read(nowMs: number): ChainRow {
      const known = store.first<ChainRow>('select * from chains where caip2 = ?', caip2);
      if (known !== undefined) return known;
      const byClock = Math.max(0, Math.floor(nowMs / terms.blockMs));
      const height = firstHeight ?? byClock;
      const baseMs = firstHeight === undefined ? byClock * terms.blockMs : nowMs;
      const row = { base_height: height, base_ms: baseMs, seen_ms: nowMs, height, next_seconds: null };
      store.atomically(() => {
        store.run(
          'insert into chains values (?, ?, ?, ?, ?, 0, null)',
          ...[caip2, row.base_height, row.base_ms, nowMs, height],
        );
        begin?.({ number: height, seconds: Math.floor(nowMs / 1000) });
      });
      return row;
    },
    write: (row: ChainRow) =>
      store.run(
        `update chains set base_height = ?, base_ms = ?, seen_ms = ?, height = ?, next_seconds = ?
         where caip2 = ?`,
        ...[row.base_height, row.base_ms, row.seen_ms, row.height, row.next_seconds, caip2],
      ),
  };
}

/**
 * Adapts a chain to a clock that was set back.
 *
 * CHOICE: no blocks are removed. The chain continues from its latest block at the new time, and the remaining delay
 * of pending transactions stays the same.
 */
function rebase(store: ChainStore, caip2: string, row: ChainRow, nowMs: number): void {
  const shiftMs = nowMs - row.seen_ms;
  row.base_height = row.height;
  row.base_ms = nowMs;
  row.seen_ms = nowMs;
  store.run(
    `update transactions set received_ms = received_ms + ?, due_ms = due_ms + ? where caip2 = ? and state = 'pending'`,
    ...[shiftMs, shiftMs, caip2],
  );
}

/** A block that is being made. */
interface Filling {
  readonly untilMs: number;
  readonly atMs: number;
  /** The number that the block gets if it has transactions. */
  readonly next: number;
  /** Called for the first included transaction only. */
  readonly makeBlock: () => Block;
  /** Stores the counters of the chain, together with each transaction. */
  readonly write: () => void;
}

/**
 * Includes ready transactions in one block, which is created for the first of them. Returns whether any was included.
 *
 * CHOICE: in a block that a reorganization will abandon, a transaction only gets a status. Its transfers and its
 * effects on balances come with the block that finally includes it.
 */
async function fillBlock<Plan>(
  {
    store,
    pool,
    machine,
    onBlock = () => undefined,
    onAbandoned = () => undefined,
  }: Pick<BlocksOptions<Plan>, 'store' | 'pool' | 'machine' | 'onBlock' | 'onAbandoned'>,
  { untilMs, atMs, next, makeBlock, write }: Filling,
): Promise<boolean> {
  let block: Block | undefined;
  // One transaction can make another one ready, so the loop repeats until nothing changes.
  for (let hasChanged = true; hasChanged; ) {
    hasChanged = false;
    for (const entry of pool.due(untilMs)) {
      const readiness = machine.readiness(entry, Math.floor(atMs / 1000));
      if (readiness === 'waits') continue;
      const { blocks = 0, abandonedBlock } = entry.reorganization ?? {};
      const isAbandoned = readiness === 'ready' && blocks > 0 && abandonedBlock === undefined;
      if (!isAbandoned && abandonedBlock !== undefined && next <= abandonedBlock + blocks) continue;
      hasChanged ||= !isAbandoned;
      if (readiness === 'drop') pool.drop(entry.hash);
      else if (readiness === 'replaced') {
        pool.replace(entry.hash, machine.replacementOf(entry));
      } else {
        if (block === undefined) {
          onBlock(next);
          block = makeBlock();
        }
        const inBlock = block;
        const run = await machine.execute(entry, inBlock);
        store.atomically(() => {
          // If the state has changed during the execution, the transaction is executed again.
          const isPending = pool.isPending(entry.hash);
          const execution = !isPending ? undefined : isAbandoned ? rollBack(store, run) : run();
          if (execution === undefined) hasChanged = true;
          else if (isAbandoned) pool.includeForNow(entry, inBlock, execution);
          else {
            if (abandonedBlock !== undefined) onAbandoned(abandonedBlock);
            pool.include(entry, inBlock, execution);
          }
          write();
        });
      }
    }
  }
  return block !== undefined;
}
