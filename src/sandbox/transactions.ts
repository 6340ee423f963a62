import type { InferEntity } from '@mikro-orm/core';
import type { SqlEntityManager } from '@mikro-orm/sql';
import { listEventsAbout } from '../domain/base/events/events.ts';
import { listEvery } from '../domain/list-every.ts';
import { TransactionEntity } from '../domain/money/transactions/transaction.entity.ts';
import { WalletActionStepEntity } from '../domain/money/wallet-actions/wallet-action.entity.ts';
import { normalizeAddress } from '../engine/assets/addresses.ts';
import { decimalText, fromRaw } from '../engine/assets/decimal.ts';
import { assetAtAddress } from '../engine/assets/known-assets.ts';
import { chainOfCaip2 } from '../engine/assets/known-chains.ts';
import { notFound } from '../errors.ts';
import type { ControlContext, ControlInput } from './control-plane.ts';
import type { AssetTerms, DecodedItem } from './controllable-chains.ts';
import type { SandboxTransaction, SandboxTransactionDetails } from './generated/schemas.ts';
import { walletNames } from './names.ts';

/** The maximum number of events. A transaction with many transfers records fewer. */
const MAX_EVENTS = 100;

const exclude = ['signedBytes', 'doubt'] as const;

type Row = Pick<
  InferEntity<typeof TransactionEntity>,
  | ('id' | 'appId' | 'walletId' | 'caip2' | 'sender' | 'method' | 'status' | 'transactionHash')
  | ('isSponsored' | 'transactionRequest' | 'movedToken' | 'movedTo' | 'movedAmount' | 'blockNumber')
  | ('feePaid' | 'failureReason' | 'createdAtMs')
>;

/** The names of the resources to which transactions refer. */
interface References {
  /** The names of wallets, by id. */
  readonly wallets: ReadonlyMap<string, string | null>;
  /** The ids of wallet actions, by the id of a transaction. */
  readonly actions: ReadonlyMap<string, string>;
}

/** Returns one page of the transactions of all apps. */
export async function listTransactionViews(
  query: ControlInput<'listSandboxTransactions'>['query'],
  context: ControlContext,
): Promise<{ data: SandboxTransaction[]; next_cursor: string | null }> {
  const { page, nextCursor, references } = await context.read(async (em) => {
    const found = await listEvery(em, TransactionEntity, query, { exclude });
    return { ...found, references: await referencesOf(em, found.page) };
  });
  return { data: await viewsOf(page, references, context), next_cursor: nextCursor };
}

/**
 * Returns a transaction with its effects on its chain and the events about it.
 *
 * @throws ApiError not_found
 */
export async function transactionDetails(
  id: string,
  context: ControlContext,
): Promise<SandboxTransactionDetails> {
  const { chains } = context;
  const { row, references } = await context.read(async (em) => {
    const row = await em.findOne(TransactionEntity, { id }, { exclude });
    if (row === null) throw notFound('Transaction');
    return { row, references: await referencesOf(em, [row]) };
  });
  const [view] = await viewsOf([row], references, context);
  const { caip2, transactionHash: hash } = row;
  const { movements, logs } =
    hash !== null && chains.has(caip2) ? await chains.effectsOf(caip2, hash) : { movements: [], logs: [] };
  const terms = await assetTerms(
    movements.map(({ tokenAddress }) => ({ caip2, tokenAddress })),
    context,
  );
  const ids = [id, ...(hash === null ? [] : [hash])];
  const about = { ids, sinceMs: row.createdAtMs, limit: MAX_EVENTS };
  return {
    ...view!,
    movements: movements.map(({ from, to, ...moved }) => ({
      ...{ from, to },
      ...amountView(caip2, moved, terms),
    })),
    logs: logs.map(({ address, topics, data, event }) => ({
      ...{ address, topics: [...topics], data, event: decodedView(event) },
    })),
    events: (await context.read((em) => listEventsAbout(em, about))).map((event) => ({
      ...{ id: event.id, type: event.type, created_at_ms: event.createdAtMs },
    })),
  };
}

async function referencesOf(em: SqlEntityManager, rows: readonly Row[]): Promise<References> {
  if (rows.length === 0) return { wallets: new Map(), actions: new Map() };
  const steps = await em.find(
    WalletActionStepEntity,
    { transactionId: { $in: rows.map(({ id }) => id) } },
    { fields: ['actionId', 'transactionId'], disableIdentityMap: true },
  );
  const wallets = await walletNames(
    em,
    rows.map(({ walletId }) => walletId),
  );
  return { wallets, actions: new Map(steps.map((step) => [step.transactionId!, step.actionId])) };
}

async function viewsOf(
  rows: readonly Row[],
  { wallets, actions }: References,
  context: ControlContext,
): Promise<SandboxTransaction[]> {
  const native = rows.map(({ caip2 }) => ({ caip2, tokenAddress: null }));
  const moved = rows.map(({ caip2, movedToken }) => ({ caip2, tokenAddress: tokenOf(movedToken) }));
  const terms = await assetTerms([...native, ...moved], context);
  const functionName = await functionNames(rows, context);
  return rows.map((row) => {
    const { id, caip2, feePaid } = row;
    const call = callOf(row, functionName);
    return {
      ...{ id, app_id: row.appId, wallet_id: row.walletId, wallet_name: wallets.get(row.walletId) ?? null },
      ...{ caip2, chain: chainOfCaip2(caip2)?.name ?? null, transaction_hash: row.transactionHash },
      ...{ status: row.status, created_at_ms: row.createdAtMs, method: methodOf(row, call) },
      ...{ sender: row.sender, transfer: transferOf(row, terms), call },
      fee: feePaid === null ? null : feeOf(caip2, feePaid, terms),
      ...{ failure_reason: row.failureReason, block_number: row.blockNumber },
      is_sponsored: row.isSponsored === 1,
      wallet_action_id: actions.get(id) ?? null,
      request_id: context.requests?.causeOf(id) ?? null,
    };
  });
}

type Call = SandboxTransaction['call'];
type FunctionName = (contract: string, selector: string) => string | undefined;

/** The fields of an EVM transaction that describe its first call. */
interface EvmRequest {
  readonly to?: string | null;
  readonly data?: string;
  readonly calls?: readonly EvmRequest[];
}

/**
 * Returns the first call of a transaction, because a transaction of Tempo may have several. Undefined if no request is
 * stored.
 */
function requestOf({ transactionRequest }: Row): EvmRequest | undefined {
  if (transactionRequest === null) return undefined;
  const request = JSON.parse(transactionRequest) as EvmRequest;
  return request.calls?.[0] ?? request;
}

const SELECTOR = /^0x[0-9a-f]{8}/;

function callOf(row: Row, functionName: FunctionName): Call {
  const { to, data = '0x' } = requestOf(row) ?? {};
  const [selector] = SELECTOR.exec(data.toLowerCase()) ?? [];
  if (to === undefined || to === null || selector === undefined) return null;
  return { contract: normalizeAddress(to), function: functionName(to.toLowerCase(), selector) ?? selector };
}

async function functionNames(
  rows: readonly Row[],
  { chains }: Pick<ControlContext, 'chains'>,
): Promise<FunctionName> {
  // Reading the interfaces opens the store of the chains, so avoid it if no row needs it.
  if (rows.every(({ transactionRequest }) => transactionRequest === null)) return () => undefined;
  const abis = await chains.abis();
  return (contract, selector) => abis.functionName(contract, selector);
}

/**
 * The API methods that can send any transaction. For these, the content of the transaction says more than the method.
 */
const plainMethod = /^(eth|wallet|tron)_|^signAndSend/;

/**
 * Describes a transaction in one word: the wallet action, `transfer`, `deploy`, the function that it calls, or the
 * method that has sent it.
 */
function methodOf(row: Row, call: Call): string {
  if (!plainMethod.test(row.method)) return row.method;
  if (row.movedTo !== null) return 'transfer';
  const request = requestOf(row);
  if (request !== undefined && (request.to === undefined || request.to === null)) return 'deploy';
  return call?.function ?? row.method;
}

export type Terms = ReadonlyMap<string, AssetTerms>;

const keyOf = (caip2: string, tokenAddress: string | null): string => `${caip2} ${tokenAddress ?? ''}`;

/** Returns the token of a stored asset, or null for `native`. */
export function tokenOf(movedToken: string | null): string | null {
  return movedToken === 'native' ? null : movedToken;
}

function transferOf(row: Row, terms: Terms): SandboxTransaction['transfer'] {
  const { caip2, movedToken, movedTo: to, movedAmount } = row;
  if (movedToken === null || to === null || movedAmount === null) return null;
  const moved = { tokenAddress: tokenOf(movedToken), rawAmount: BigInt(movedAmount) };
  return { to: normalizeAddress(to), ...amountView(caip2, moved, terms) };
}

function feeOf(caip2: string, feePaid: string, terms: Terms): SandboxTransaction['fee'] {
  const { asset, amount } = amountView(caip2, { tokenAddress: null, rawAmount: BigInt(feePaid) }, terms);
  return { asset, amount };
}

/** Returns the symbol and the decimals of an asset. An unknown token is counted in base units. */
export function termsIn(terms: Terms, caip2: string, tokenAddress: string | null): AssetTerms {
  return terms.get(keyOf(caip2, tokenAddress)) ?? { symbol: null, decimals: 0 };
}

/** Returns an amount of an asset for display. The amount of an unknown token is in base units. */
export function amountView(
  caip2: string,
  { tokenAddress, rawAmount }: { readonly tokenAddress: string | null; readonly rawAmount: bigint },
  terms: Terms,
) {
  const { symbol, decimals } = termsIn(terms, caip2, tokenAddress);
  const token = tokenAddress === null ? null : normalizeAddress(tokenAddress);
  return {
    asset: symbol ?? token ?? caip2,
    token_address: token,
    amount: decimalText(fromRaw(rawAmount, decimals)),
    raw_amount: String(rawAmount),
  };
}

/** Reads symbol and decimals of each distinct asset once. */
export async function assetTerms(
  assets: readonly { readonly caip2: string; readonly tokenAddress: string | null }[],
  { chains }: Pick<ControlContext, 'chains'>,
): Promise<Terms> {
  const distinct = new Map(assets.map((asset) => [keyOf(asset.caip2, asset.tokenAddress), asset]));
  const terms = new Map<string, AssetTerms>();
  for (const [key, { caip2, tokenAddress }] of distinct) {
    const found = chains.has(caip2)
      ? await chains.termsOf(caip2, tokenAddress)
      : namedTerms(caip2, tokenAddress);
    if (found !== undefined) terms.set(key, found);
  }
  return terms;
}

/**
 * Returns the symbol and decimals of an asset on a chain that is not simulated. Undefined for an asset without a name
 * in the API.
 */
function namedTerms(caip2: string, tokenAddress: string | null): AssetTerms | undefined {
  const chain = chainOfCaip2(caip2);
  if (chain === undefined) return undefined;
  const asset = tokenAddress === null ? chain.native : assetAtAddress(chain, tokenAddress);
  return asset && { symbol: asset.asset.toUpperCase(), decimals: asset.decimals };
}

/** Returns a decoded function, event or error in the form of the control plane. */
export function decodedView(decoded: DecodedItem | undefined) {
  return decoded === undefined ? null : { name: decoded.name, arguments: [...decoded.arguments] };
}
