import type { ChainTransfer } from '../../ports/chain-transfers.ts';
import { integer, list, record, text, unexpected } from './answers.ts';
import type { Read } from './nodes.ts';

interface SolanaQuestion {
  readonly commitment: 'confirmed' | 'finalized';
  readonly hash: string;
  readonly address: string;
}

interface Held {
  readonly owner: string;
  readonly before: bigint;
  readonly after: bigint;
}

/** What an address gained in a transaction, of each asset. */
export async function solanaTransfersIn(
  read: Read,
  { commitment, hash, address }: SolanaQuestion,
): Promise<ChainTransfer[]> {
  const method = 'getTransaction';
  const terms = { commitment, encoding: 'json', maxSupportedTransactionVersion: 0 };
  const answer = record(method, await read(method, hash, terms));
  const meta = record(method, answer.meta);
  if (meta.err !== null && meta.err !== undefined) return [];
  const blockNumber = integer(method, answer.slot);
  const common = {
    hash,
    recipient: address,
    blockNumber,
    blockTimestampSeconds: Number(answer.blockTime ?? 0),
    position: `${blockNumber}:${hash}`,
  };
  return [...heldByAsset(answer, meta)].flatMap(([tokenAddress, held]) => {
    const own = held.filter(({ owner }) => owner === address);
    const rawAmount = own.reduce((sum, { before, after }) => sum + after - before, 0n);
    if (rawAmount <= 0n) return [];
    const sender = senderOf(held, address);
    return [{ ...common, sender, tokenAddress, rawAmount, key: `${hash}:${tokenAddress ?? 'native'}` }];
  });
}

/** CHOICE: the sender is the account that lost most of the asset; for a minted token, the recipient. */
function senderOf(held: readonly Held[], recipient: string): string {
  let sender = { owner: recipient, lost: 0n };
  for (const { owner, before, after } of held) {
    if (owner !== recipient && before - after > sender.lost) sender = { owner, lost: before - after };
  }
  return sender.owner;
}

/** Balances before and after a transaction, by mint; null is the native asset. */
function heldByAsset(
  answer: Record<string, unknown>,
  meta: Record<string, unknown>,
): ReadonlyMap<string | null, readonly Held[]> {
  const method = 'getTransaction';
  const { message } = record(method, answer.transaction);
  const loaded = meta.loadedAddresses === undefined ? {} : record(method, meta.loadedAddresses);
  const keys = [
    ...list(method, record(method, message).accountKeys),
    ...list(method, loaded.writable ?? []),
    ...list(method, loaded.readonly ?? []),
  ].map((key) => text(method, key));
  const [before, after] = [meta.preBalances, meta.postBalances].map((balances) =>
    list(method, balances).map((balance) => integer(method, balance)),
  );
  if (before!.length !== keys.length || after!.length !== keys.length) unexpected(method);
  const held = new Map<string | null, Held[]>([
    [null, keys.map((owner, index) => ({ owner, before: before![index]!, after: after![index]! }))],
  ]);
  for (const [side, balances] of [
    ['before', meta.preTokenBalances],
    ['after', meta.postTokenBalances],
  ] as const) {
    for (const item of list(method, balances ?? [])) {
      const { mint, owner, uiTokenAmount } = record(method, item);
      const amount = text(method, record(method, uiTokenAmount).amount);
      if (!/^\d{1,20}$/.test(amount)) unexpected(method);
      const entry = { owner: text(method, owner), before: 0n, after: 0n, [side]: BigInt(amount) };
      const key = text(method, mint);
      held.set(key, [...(held.get(key) ?? []), entry]);
    }
  }
  return held;
}
