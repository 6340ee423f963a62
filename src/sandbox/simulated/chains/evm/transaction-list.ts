import { readWithBigints } from '../ledger.ts';
import type { ChainStore } from '../store.ts';
import type { Abis, Decoded } from './abis.ts';
import type { EvmParts } from './parts.ts';
import type { EvmPlan } from './plan.ts';
import { type EvmLog, type NewReceipt, type Receipt, receiptsBefore } from './receipts.ts';

/** An included transaction, with its decoded call and events. Addresses of EVM chains are lower-case 0x hex. */
export interface ListedTransaction
  extends Pick<NewReceipt, 'hash' | 'block' | 'sender' | 'recipient' | 'contract' | 'gasUsed'> {
  readonly position: string;
  readonly value: bigint;
  /** The calldata in 0x hex; on Solana, the transaction in base64. */
  readonly data: string;
  readonly call: Decoded | undefined;
  readonly logs: readonly (EvmLog & { readonly event: Decoded | undefined })[];
  /** The reason of a revert; undefined for a transaction that has succeeded. */
  readonly reason: string | undefined;
  /**
   * Whether this is a payment by the faucet, the bank, the exchange or the card issuer. Such a payment is not a
   * transaction.
   */
  readonly isDeposit: boolean;
  /** The lines that programs have logged. Empty on EVM chains. */
  readonly messages: readonly string[];
}

interface TransactionRow {
  readonly plan: string;
  readonly reason: string | null;
}

/** Decoding pauses for other work after this time. */
const SLICE_MS = 10;

/**
 * Lists the included transactions of a chain, newest first.
 *
 * @param before the `position` at which the previous page ended. Undefined for the first page.
 */
export async function listTransactions(
  parts: EvmParts,
  abis: Abis,
  { limit, before }: { limit: number; before: string | undefined },
): Promise<readonly ListedTransaction[]> {
  const transactions: ListedTransaction[] = [];
  let turnMs = performance.now() + SLICE_MS;
  for (const receipt of receiptsBefore(parts.state, { limit, before: positionIn(before) })) {
    if (performance.now() > turnMs) {
      await new Promise((resolve) => setImmediate(resolve));
      turnMs = performance.now() + SLICE_MS;
    }
    transactions.push(listed(parts, abis, receipt));
  }
  return transactions;
}

export function positionIn(text: string | undefined): { block: number; index: number } | undefined {
  const [block, index] = (text ?? '').split('.').map(Number);
  return block === undefined || index === undefined ? undefined : { block, index };
}

function listed({ world: { store }, caip2 }: EvmParts, abis: Abis, receipt: Receipt): ListedTransaction {
  const { hash, block, sender, recipient, contract, gasUsed, logs, index } = receipt;
  const row = store.first<TransactionRow>(
    'select plan, reason from transactions where caip2 = ? and hash = ?',
    ...[caip2, hash],
  );
  const [first] = row === undefined ? [] : (readWithBigints(row.plan) as EvmPlan).calls;
  const { to = null, data = '0x', value = nativeDeposit(store, caip2, hash) } = first ?? {};
  return {
    ...{ hash, block, sender, recipient, contract, gasUsed, value, data },
    position: `${block.number}.${index}`,
    call: to === null || data === '0x' ? undefined : abis.call(to, data),
    logs: logs.map((log) => ({ ...log, event: abis.event(log) })),
    reason: row?.reason ?? undefined,
    ...{ isDeposit: row === undefined, messages: [] },
  };
}

function nativeDeposit(store: ChainStore, caip2: string, hash: string): bigint {
  const row = store.first<{ amount: string }>(
    `select amount from transfers where caip2 = ? and hash = ? and asset = ''`,
    ...[caip2, hash],
  );
  return BigInt(row?.amount ?? 0);
}
