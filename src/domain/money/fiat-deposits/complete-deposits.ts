import type { SqlEntityManager } from '@mikro-orm/sql';
import type { Kysely } from 'kysely';
import { decimalText, fromRaw } from '../../../engine/assets/decimal.ts';
import { assetNamed, type KnownAsset } from '../../../engine/assets/known-assets.ts';
import { chainNamed } from '../../../engine/assets/known-chains.ts';
import type { AnyChain } from '../../../ports/chains.ts';
import type { OperationContext, Services } from '../../../ports/operation-context.ts';
import { lockForUpdate } from '../../../storage/locks.ts';
import { prepareQuery } from '../../prepared-query.ts';
import type { Tables } from '../../tables.ts';
import { FiatDepositAccountEntity, FiatDepositEntity } from './fiat-deposit.entity.ts';
import { recordDepositCompleted } from './record-fiat-deposits.ts';

// KYSELY: a claim joins deposits with their accounts and wallets, and locks only the deposits.

/** CHOICE: the interval at which a chain is polled for the transaction of a deposit. */
const POLL_MS = 2000;

/** A deposit that the provider has sent to its wallet. */
export interface SentDeposit {
  readonly id: string;
  readonly hash: string;
  readonly rawOutput: string | null;
  readonly asset: string;
  readonly chain: string;
  /** The address of the wallet that receives the deposit. */
  readonly address: string;
}

interface Wanted {
  readonly nowMs: number;
  readonly limit: number;
}

const dueOf = (database: Kysely<Tables>, { nowMs, limit }: Wanted) =>
  database
    .selectFrom('fiat_deposits as deposits')
    .innerJoin('fiat_deposit_accounts as accounts', 'accounts.id', 'deposits.account_id')
    .innerJoin('wallets', 'wallets.id', 'accounts.wallet_id')
    .select(['deposits.id', 'deposits.transaction_hash as hash', 'deposits.raw_output as rawOutput'])
    .select(['accounts.asset', 'accounts.chain', 'wallets.address'])
    .where('deposits.next_check_at_ms', '<=', nowMs)
    .where('deposits.transaction_hash', 'is not', null)
    .orderBy('deposits.next_check_at_ms')
    .orderBy('deposits.id')
    .limit(limit)
    .$castTo<SentDeposit>()
    .forUpdate('deposits')
    .skipLocked();

const selectDue = prepareQuery<Wanted, SentDeposit>(dueOf);

/**
 * Claims sent deposits whose transactions are due for a check, most overdue first.
 *
 * @param busy the busy chains, under the names that deposits use. Their deposits are not claimed.
 */
export async function claimSentDeposits(
  em: SqlEntityManager,
  nowMs: number,
  { busy, limit }: { readonly busy: readonly string[]; readonly limit: number },
): Promise<readonly SentDeposit[]> {
  const wanted = { nowMs, limit };
  const due =
    busy.length === 0
      ? (await selectDue(em, wanted)).rows
      : await dueOf(em.getKysely<Tables>(), wanted).where('accounts.chain', 'not in', busy).execute();
  if (due.length > 0) {
    await em.nativeUpdate(
      FiatDepositEntity,
      { id: { $in: due.map(({ id }) => id) } },
      { nextCheckAtMs: nowMs + POLL_MS },
    );
  }
  return due;
}

/**
 * Returns the amount that arrived, in base units. Undefined while no block includes the transaction, if it delivered
 * nothing, and for a chain that is not configured. Call it outside any transaction.
 */
export async function findArrival(
  { chains }: Pick<Services, 'chains'>,
  sent: SentDeposit,
): Promise<bigint | undefined> {
  const asset = assetOf(sent);
  const chain = chains.find(asset.chain.caip2);
  return chain === undefined ? undefined : await arrivalOf(chain, asset, sent);
}

async function arrivalOf(
  chain: AnyChain,
  { tokenAddress }: KnownAsset,
  { hash, address, rawOutput }: SentDeposit,
): Promise<bigint | undefined> {
  if (chain.transfersOf !== undefined) {
    const query = { address, tokenAddresses: [tokenAddress], hash, beforePosition: undefined, limit: 100 };
    const received = (await chain.transfersOf(query)).filter(({ recipient }) => isSame(recipient, address));
    return sumOf(received);
  }
  if (chain.kind === 'evm') {
    const found = await chain.movementsOf(hash);
    const received = found?.movements.filter(
      ({ token, to }) => isSame(to, address) && isSame(token ?? '', tokenAddress ?? ''),
    );
    return received && sumOf(received);
  }
  // The provider sent the transaction, so we have no signed bytes to pass.
  const status = await chain.statusOf(hash, new Uint8Array());
  return status.kind === 'included' && rawOutput !== null ? BigInt(rawOutput) : undefined;
}

/**
 * Returns the sum of the received amounts; undefined if there are none, because such a transaction does not complete a
 * deposit.
 */
function sumOf(received: readonly { readonly rawAmount: bigint }[]): bigint | undefined {
  return received.length === 0 ? undefined : received.reduce((sum, { rawAmount }) => sum + rawAmount, 0n);
}

// EVM addresses, which start with 0x, are compared regardless of case.
function isSame(left: string, right: string): boolean {
  return left.startsWith('0x') ? left.toLowerCase() === right.toLowerCase() : left === right;
}

/** Completes a deposit that has arrived, and records its event. Does nothing if the deposit has already ended. */
export async function completeDeposit(
  context: Pick<OperationContext, 'em' | 'ids' | 'notes' | 'nowMs'>,
  sent: SentDeposit,
  rawAmount: bigint,
): Promise<void> {
  const deposit = await context.em.findOne(
    FiatDepositEntity,
    { id: sent.id, state: 'delivered' },
    lockForUpdate,
  );
  if (deposit === null) return;
  deposit.state = 'completed';
  deposit.rawOutput = String(rawAmount);
  deposit.nextCheckAtMs = null;
  await context.em.flush();
  const account = await context.em.findOneOrFail(FiatDepositAccountEntity, { id: deposit.accountId });
  const amount = decimalText(fromRaw(rawAmount, assetOf(sent).decimals));
  await recordDepositCompleted(context, { account, deposit, amount });
}

function assetOf(sent: Pick<SentDeposit, 'asset' | 'chain'>): KnownAsset {
  const chain = chainNamed(sent.chain);
  const asset = chain && assetNamed(chain, sent.asset);
  if (asset === undefined) throw new Error(`the asset ${sent.asset} on ${sent.chain} is not known`);
  return asset;
}
