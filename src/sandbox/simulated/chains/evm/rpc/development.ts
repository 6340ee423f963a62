import * as TxEnvelopeEip1559 from 'ox/TxEnvelopeEip1559';
import { bytesTo0xHex, hexToBytes } from '../../../../../engine/crypto/encoding.ts';
import { termsOf } from '../../chain-terms.ts';
import { NATIVE } from '../../ledger.ts';
import { invalid, isRecord, RpcError } from '../../rpc-calls.ts';
import { hasNativeAsset } from '../../sponsors.ts';
import { makeHistory } from '../../store-history.ts';
import { acceptTransaction } from '../accept-transaction.ts';
import { dryRun } from '../dry-run.ts';
import { FAUCET_ADDRESS, give } from '../faucet.ts';
import type { EvmParts } from '../parts.ts';
import { decodeSigned } from '../plan.ts';
import { latestReceipt } from '../receipts.ts';
import { setCodeAt } from '../state.ts';
import {
  addressOf,
  bytesOf,
  type Call,
  callOf,
  hashText,
  numberOf,
  REVERTED,
  SERVER_ERROR,
} from './calls.ts';
import { quantity } from './views.ts';

/**
 * The methods with which clients of anvil and Hardhat change a chain. Methods that move the clock are also in
 * `sandbox/json-rpc.ts`, because all chains share one clock.
 */

/** CHOICE: only the latest 1,000 snapshots of a chain are kept. */
const MAX_SNAPSHOTS = 1_000;
/** CHOICE: the maximum number of blocks that a client's reorganization may replace. */
const MAX_REPLACED = 100_000n;
const MAX_MINED = 1_000_000n;

interface Snapshot {
  /** The position in the change log of the store. */
  readonly content: number;
  readonly position: number;
  readonly head: number;
  /** The position of the chain's latest transaction. */
  readonly latest: { readonly block: number; readonly index: number } | undefined;
}

type DevelopmentMethod = (params: readonly unknown[]) => unknown;

/** The development methods of one chain, and what other methods need from them. */
export interface Development {
  readonly methods: Readonly<Record<string, DevelopmentMethod>>;
  /** Starts recording changes, so that they can be undone. */
  begin(): void;
  /** Returns the accounts for which clients send transactions without a signature. */
  accounts(): readonly string[];
  /** Sends the transaction of an impersonated account. Returns its hash. */
  send(transaction: unknown): Promise<string>;
  /** Mines a block if the chain is set to mine one per transaction. */
  mineSent(): Promise<void>;
}

export function makeDevelopment(parts: EvmParts): Development {
  const { world, caip2, state, pool, blocks, forks } = parts;
  const { store } = world;
  const history = makeHistory(store);
  const impersonated = new Set<string>();
  let impersonatesAll = false;
  let isAutomatic = false;
  const snapshots = new Map<string, Snapshot>();
  let snapshotCount = 0;
  /** The position of the first change of each block with transactions, oldest first. */
  let marks: { readonly block: number; readonly position: number }[] = [];
  let begun: { readonly content: number; readonly head: number } | undefined;

  parts.onBlock((block) => {
    if (begun?.content === store.content()) marks.push({ block, position: history.position() });
  });

  function begin(): void {
    if (begun?.content === store.content()) return;
    history.begin();
    marks = [];
    begun = { content: store.content(), head: blocks.head().number };
  }

  function takeSnapshot(): string {
    snapshotCount += 1;
    const id = quantity(snapshotCount);
    snapshots.set(id, {
      ...{ content: store.content(), position: history.position(), head: blocks.head().number },
      latest: latestReceipt(state),
    });
    if (snapshots.size > MAX_SNAPSHOTS) snapshots.delete(snapshots.keys().next().value!);
    return id;
  }

  /** Returns to a snapshot, which deletes that snapshot and all later ones. */
  function revertTo(id: unknown): boolean {
    const key = quantity(numberOf(id, 'snapshot'));
    const snapshot = snapshots.get(key);
    if (snapshot === undefined || snapshot.content !== store.content()) return false;
    const { head, latest, position } = snapshot;
    if (!history.isKnown(position)) return false;
    const now = latestReceipt(state);
    const isInHead =
      now !== undefined && now.block >= head && latest?.block === head && now.index > latest.index;
    const from = isInHead || (now?.block === head && latest?.block !== head) ? head : head + 1;
    if (blocks.head().number >= from) forks.replace(from);
    history.rollBack(caip2, position);
    marks = marks.filter((mark) => mark.position < position);
    for (const other of snapshots.keys()) if (BigInt(other) >= BigInt(key)) snapshots.delete(other);
    return true;
  }

  /**
   * Replaces the latest blocks by empty blocks. Their transactions become pending again.
   *
   * CHOICE: deposits from the faucet in those blocks, and payments by the simulated exchange, bank and card issuer,
   * are lost. They are not transactions, so no block could include them again. Snapshots of those blocks are deleted.
   */
  function reorganize(depth: bigint): void {
    const head = blocks.head();
    const least = begun?.head ?? head.number;
    if (depth < 1n || depth > MAX_REPLACED || BigInt(head.number) - depth < BigInt(least)) {
      const most = Math.max(0, head.number - least);
      throw invalid(`expected a depth from 1 to ${most}: earlier blocks are not recorded, got ${depth}`);
    }
    const from = head.number - Number(depth) + 1;
    const mark = marks.find(({ block }) => block >= from);
    if (mark !== undefined && !history.isKnown(mark.position)) {
      throw new RpcError(SERVER_ERROR, 'the changes of these blocks are no longer known');
    }
    forks.replace(from);
    if (mark === undefined) return;
    const chain = store.first<ChainRow>('select * from chains where caip2 = ?', caip2)!;
    const sent = store.all<SentRow>(
      `select ${SENT} from transactions where caip2 = ? and (block_number >= ? or state = 'pending') order by id`,
      ...[caip2, from],
    );
    history.rollBack(caip2, mark.position);
    for (const [id, { position }] of snapshots) if (position > mark.position) snapshots.delete(id);
    marks = marks.filter(({ block }) => block < from);
    store.run(
      'update chains set base_height = ?, base_ms = ?, seen_ms = ?, height = ? where caip2 = ?',
      ...[chain.base_height, chain.base_ms, chain.seen_ms, chain.height, caip2],
    );
    const dueMs = blocks.dueMs();
    for (const { hash, sender, lane, nonce, plan, received_ms: receivedMs } of sent) {
      store.run(
        `insert into transactions (caip2, hash, sender, lane, nonce, plan, state, received_ms, due_ms)
         values (?, ?, ?, ?, ?, ?, 'pending', ?, ?) on conflict (caip2, hash) do nothing`,
        ...[caip2, hash, sender, lane, nonce, plan, receivedMs, dueMs],
      );
    }
  }

  /**
   * Sets an account's balance.
   *
   * CHOICE: the faucet gives the missing amount or takes back the excess, so that the books stay balanced.
   */
  function setBalance(address: string, amount: bigint): void {
    if (!hasNativeAsset(state)) throw new RpcError(SERVER_ERROR, 'the chain has no native asset');
    const { ledger } = state;
    const missing = amount - ledger.balance(address, NATIVE);
    const block = blocks.head();
    if (missing > 0n) give(state, block, { owner: address, asset: NATIVE, rawAmount: missing });
    if (missing >= 0n) return;
    const gift = { owner: FAUCET_ADDRESS, asset: NATIVE, rawAmount: -missing, payer: address };
    give(state, block, gift);
  }

  function setNextTime(time: unknown): void {
    const seconds = Number(numberOf(time, 'timestamp'));
    const latest = blocks.secondsOf(blocks.head().number);
    if (seconds < latest) {
      throw invalid(`Timestamp error: ${seconds} is lower than previous block's timestamp ${latest}`);
    }
    blocks.setNextSeconds(seconds);
  }

  async function mine(count: bigint): Promise<void> {
    if (count > MAX_MINED) throw invalid(`expected at most ${MAX_MINED} blocks, got ${count}`);
    if (count > 0n) await blocks.mine(Number(count));
  }

  const change =
    (work: DevelopmentMethod): DevelopmentMethod =>
    (params) =>
      blocks.exclusively(() => work(params));

  const setAutomine: DevelopmentMethod = ([isOn]) => {
    isAutomatic = isOn === true;
    blocks.hold(isOn === false);
    return null;
  };

  const own: Record<string, DevelopmentMethod> = {
    async mine([count]) {
      await mine(count == null ? 1n : numberOf(count, 'blocks'));
      return null;
    },
    setBalance: change(([address, amount]) => {
      setBalance(addressOf(address), numberOf(amount, 'balance'));
      return null;
    }),
    setCode: change(([address, code]) => {
      setCodeAt(state, addressOf(address), bytesOf(code));
      return null;
    }),
    setStorageAt: change(([address, slot, word]) => {
      const [key, content] = [numberOf(slot, 'slot'), numberOf(word, 'word')].map((each) =>
        each.toString(16).padStart(64, '0'),
      ) as [string, string];
      state.bytecode.setWord(addressOf(address), key, content);
      return true;
    }),
    setNonce: change(([address, nonce]) => {
      const next = numberOf(nonce, 'nonce');
      if (next > BigInt(Number.MAX_SAFE_INTEGER)) throw invalid('invalid argument: nonce too high');
      state.accounts.setNonce(addressOf(address), '', Number(next));
      return null;
    }),
    impersonateAccount([address]) {
      impersonated.add(addressOf(address));
      return null;
    },
    stopImpersonatingAccount([address]) {
      impersonated.delete(addressOf(address));
      return null;
    },
    autoImpersonateAccount([isOn]) {
      impersonatesAll = isOn === true;
      return null;
    },
    dropTransaction: change(([hash]) => {
      const text = hashText(hash);
      if (!pool.isPending(text)) return null;
      pool.drop(text);
      return text;
    }),
    getAutomine: () => isAutomatic,
    setAutomine,
  };

  return {
    begin,
    methods: {
      ...withPrefix('anvil_', own),
      ...withPrefix('hardhat_', own),
      anvil_reorg: change(([options, blocksOf]) => {
        const depth = isRecord(options) ? options.depth : options;
        const pairs = isRecord(options) ? options.txBlockPairs : blocksOf;
        if (Array.isArray(pairs) && pairs.length > 0) {
          throw invalid('transactions in the new blocks are not supported: send them afterwards');
        }
        reorganize(numberOf(depth, 'depth'));
        return null;
      }),
      evm_setAutomine: setAutomine,
      async evm_mine([options]) {
        const { blocks: count = 1, timestamp = options } = isRecord(options)
          ? options
          : { timestamp: options };
        if (timestamp != null && !isRecord(timestamp)) {
          await blocks.exclusively(() => setNextTime(timestamp));
        }
        await mine(numberOf(count, 'blocks'));
        return '0x0';
      },
      evm_setNextBlockTimestamp: change(([time]) => {
        setNextTime(time);
        return null;
      }),
      evm_snapshot: change(takeSnapshot),
      evm_revert: change(([id]) => revertTo(id)),
    },
    accounts: () => [...impersonated],
    async send(value) {
      const call = callOf(value);
      if (!impersonatesAll && !impersonated.has(call.from)) {
        throw new RpcError(SERVER_ERROR, 'unknown account: impersonate it, or send a signed transaction');
      }
      const raw = await unsigned(parts, call, value as Readonly<Record<string, unknown>>);
      const decoded = await decodeSigned(raw, call.from);
      const outcome = await parts.atHead(() => acceptTransaction(parts, decoded));
      if (!outcome.isAccepted) throw new RpcError(SERVER_ERROR, outcome.message);
      await blocks.catchUp();
      return outcome.hash;
    },
    async mineSent() {
      if (isAutomatic) await blocks.mine(1);
    },
  };
}

interface ChainRow {
  readonly base_height: number;
  readonly base_ms: number;
  readonly seen_ms: number;
  readonly height: number;
}

interface SentRow {
  readonly hash: string;
  readonly sender: string;
  readonly lane: string;
  readonly nonce: number | null;
  readonly plan: string;
  readonly received_ms: number;
}

const SENT = 'hash, sender, lane, nonce, plan, received_ms';

function withPrefix<T>(prefix: string, all: Readonly<Record<string, T>>): Record<string, T> {
  return Object.fromEntries(Object.entries(all).map(([name, value]) => [prefix + name, value]));
}

/**
 * Builds the transaction of an impersonated account.
 *
 * CHOICE: its signature contains the sender, so that two accounts never send the same bytes.
 */
async function unsigned(
  { state, pool, blocks, interpreter, caip2 }: EvmParts,
  { from, to, value, data, gas, hasGas }: Call,
  fields: Readonly<Record<string, unknown>>,
): Promise<Uint8Array> {
  const { baseFee, priorityFee } = termsOf(caip2);
  const given = (name: string) => (fields[name] == null ? undefined : numberOf(fields[name], name));
  let nonce = state.accounts.nonce(from, '');
  for (const entry of pool.waiting(from, '')) if (entry.nonce === nonce) nonce += 1;
  const price = given('gasPrice');
  const tip = given('maxPriorityFeePerGas') ?? price ?? priorityFee;
  let gasLimit = gas;
  if (!hasGas) {
    const call = { from, to: to ?? undefined, value, data, authorizationList: [] };
    const estimate = await dryRun(await interpreter(), state, { block: blocks.head(), call });
    if (!estimate.succeeds) {
      const isRevert = estimate.message.startsWith('execution reverted');
      throw new RpcError(isRevert ? REVERTED : SERVER_ERROR, estimate.message);
    }
    gasLimit = estimate.units;
  }
  const envelope = TxEnvelopeEip1559.from({
    ...{ chainId: Number(state.chainId), nonce: given('nonce') ?? BigInt(nonce), gas: gasLimit, value },
    ...(to === null ? {} : { to: to as `0x${string}` }),
    data: bytesTo0xHex(data) as `0x${string}`,
    maxFeePerGas: given('maxFeePerGas') ?? price ?? 2n * baseFee + tip,
    maxPriorityFeePerGas: tip,
  });
  const signature = {
    r: `0x${from.slice(2).padStart(64, '0')}`,
    s: `0x${'1'.padStart(64, '0')}`,
    yParity: 0,
  } as const;
  return hexToBytes(TxEnvelopeEip1559.serialize(envelope, { signature }).slice(2));
}
