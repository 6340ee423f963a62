import { normalizeAddress } from '../../../engine/assets/addresses.ts';
import type { CardEnvironment } from '../../../ports/cards.ts';
import type { FiatEnvironment } from '../../../ports/fiat.ts';
import { issuerAddress } from '../cards/parts.ts';
import { solverOn, toLedger } from '../exchange/solver.ts';
import { treasuryAddress } from '../fiat/treasury.ts';
import type { Abis, Decoded } from './evm/abis.ts';
import { DISTRIBUTOR_ADDRESS } from './evm/contracts/addresses.ts';
import { type Holding, tokenAt, tokenBooks, tokensOn } from './evm/contracts/tokens.ts';
import { borrowerOf, vaultsOn } from './evm/contracts/vaults.ts';
import { type EvmLog, findReceipt } from './evm/receipts.ts';
import type { EvmState } from './evm/state.ts';
import { FEE_ACCOUNT, NATIVE } from './ledger.ts';
import { NATIVE_MINT } from './solana/accounts.ts';
import { NO_ONE } from './solana/movements.ts';
import { BUNDLER_ADDRESS, PAYMASTER_ADDRESS } from './sponsors.ts';
import type { ChainStore } from './store.ts';
import type { Simulated, World } from './world.ts';

/** The kind of account that holds an asset. */
type Holder =
  | 'accounts'
  | 'bank'
  | 'borrowers'
  | 'cards'
  | 'exchange'
  | 'fees'
  | 'pools'
  | 'rewards'
  | 'sponsors'
  | 'vaults';

/** Where all units of an asset are, in base units. */
export interface AssetBooks {
  readonly caip2: string;
  /** Null for the native asset. */
  readonly tokenAddress: string | null;
  /** Null for a smart contract that reports no symbol. */
  readonly symbol: string | null;
  readonly decimals: number;
  /** The amount that the faucet gave out. */
  readonly given: bigint;
  /**
   * The amount that smart contracts created minus the amount that they destroyed. They create the shares of vaults
   * and the wrapped native asset.
   */
  readonly minted: bigint;
  readonly held: Readonly<Partial<Record<Holder, bigint>>>;
}

/** The amount of an asset that an address holds, in base units. */
export interface AddressHolding {
  readonly caip2: string;
  readonly address: string;
  readonly rawAmount: bigint;
  readonly decimals: number;
  /** The lower-case name of the asset that has the same price. */
  readonly pricedAs: string;
}

/** The symbol (null if the smart contract reports none) and the decimals of an asset. */
export interface AssetTerms {
  readonly symbol: string | null;
  readonly decimals: number;
}

/** The effects of an included transaction: movements of assets, and logs. */
export interface TransactionEffects {
  readonly movements: readonly {
    readonly from: string;
    readonly to: string;
    /** Null for the native asset. */
    readonly tokenAddress: string | null;
    readonly rawAmount: bigint;
  }[];
  /** Empty on chains other than EVM chains. */
  readonly logs: readonly (EvmLog & { readonly event: Decoded | undefined })[];
}

interface TransferRow {
  readonly sender: string;
  readonly recipient: string;
  readonly asset: string;
  readonly amount: string;
}

/** The terms of tokens that no longer exist. An account may still hold units of one. */
const UNKNOWN: AssetTerms = { symbol: null, decimals: 0 };
const NO_ADDRESS = `0x${'0'.repeat(40)}`;
/** The addresses that appear as sender of minted tokens and as recipient of burned tokens. */
const MINTS = [NO_ADDRESS, NO_ONE];
const FAUCETS = [
  '0x00000000000000000000000000000000000fa0ce',
  'Faucet1111111111111111111111111111111111111',
  'T9yD14Nj9j7xAB4dbGeiX9h8unkKHxuWwb',
];

/**
 * Returns the books of one chain, by asset.
 *
 * INVARIANT: all holders together have the amount that the faucet gave out plus the amount that smart contracts
 * minted.
 */
export async function booksOf(tokens: Tokens, simulated: Simulated): Promise<AssetBooks[]> {
  const { store } = tokens;
  const { chain, evm } = simulated;
  const { caip2 } = chain;
  const holderOf = holdersOn(store, caip2, {
    treasuries: await treasuriesOn(store, caip2),
    state: evm?.state,
  });
  const books = new Map<string, { given: bigint; minted: bigint; held: Partial<Record<Holder, bigint>> }>();
  const of = (asset: string) => {
    const known = books.get(asset) ?? { given: 0n, minted: 0n, held: {} };
    books.set(asset, known);
    return known;
  };
  const { held, begunWith } = evm === undefined ? { held: [], begunWith: [] } : tokenBooks(evm.state);
  for (const { asset, amount } of begunWith) of(asset).given += amount;
  for (const { owner, asset, amount } of [...storedBalances(store, caip2), ...held]) {
    if (amount === 0n) continue;
    const book = of(asset);
    const holder = holderOf(owner);
    book.held[holder] = (book.held[holder] ?? 0n) + amount;
    // Amounts that accounts send to the zero address still exist. Only amounts that smart contracts burn are
    // destroyed.
    if (owner === NO_ADDRESS) book.minted += amount;
  }
  const moved = store.all<TransferRow>(
    `select sender, recipient, asset, amount from transfers
     where caip2 = ? and (sender in (?, ?, ?, ?, ?) or recipient in (?, ?))`,
    ...[caip2, ...FAUCETS, ...MINTS, ...MINTS],
  );
  for (const { sender, recipient, asset, amount } of moved) {
    const book = of(asset);
    if (FAUCETS.includes(sender)) book.given += BigInt(amount);
    // Lamports that are sent to the system program stay in its account.
    if (asset === NATIVE && caip2.startsWith('solana:')) continue;
    if (MINTS.includes(sender)) book.minted += BigInt(amount);
    if (MINTS.includes(recipient)) book.minted -= BigInt(amount);
  }
  const isListed = (asset: string): boolean =>
    asset === NATIVE || evm === undefined || held.some((holding) => holding.asset === asset);
  const listed = [...books]
    .filter(([asset]) => isListed(asset))
    .sort(([one], [other]) => (one < other ? -1 : 1));
  return Promise.all(
    listed.map(async ([asset, book]) => {
      const tokenAddress = asset === NATIVE ? null : asset;
      const { symbol, decimals } = (await termsOf(tokens, simulated, tokenAddress)) ?? UNKNOWN;
      return { caip2, tokenAddress, symbol, decimals, ...book };
    }),
  );
}

function storedBalances(store: ChainStore, caip2: string): Holding[] {
  return store
    .all<{ owner: string; asset: string; amount: string }>(
      `select owner, asset, amount from balances where caip2 = ?
       union all select owner, mint, amount from token_accounts where caip2 = ? and mint <> ?`,
      // Wrapped SOL consists of lamports, which are already counted.
      ...[caip2, caip2, NATIVE_MINT],
    )
    .map((row) => ({ ...row, amount: BigInt(row.amount) }));
}

type Tokens = Pick<World, 'store' | 'knownTokens' | 'nativeSymbol'>;

/**
 * Returns the balances of addresses in the assets of one chain that have a name in the API.
 *
 * NOTE: on a chain that forks a real one, only native balances that have changed are known.
 */
export function holdingsOf(
  tokens: Tokens,
  simulated: Pick<Simulated, 'chain' | 'evm'>,
  addresses: readonly string[],
): AddressHolding[] {
  const { caip2 } = simulated.chain;
  const byOwner = new Map(addresses.map((address) => [toLedger(caip2, address), address]));
  const owners = JSON.stringify([...byOwner.keys()]);
  const termsOf = namedAssetsOn(tokens, simulated);
  return [
    ...balancesOf(tokens.store, caip2, owners),
    ...tokenBalancesOf(tokens.store, simulated, owners),
  ].flatMap(({ owner, asset, amount }) => {
    const terms = amount === 0n ? undefined : termsOf(asset);
    if (terms === undefined) return [];
    return [{ caip2, address: byOwner.get(owner)!, rawAmount: amount, ...terms }];
  });
}

/**
 * Returns the balances of several accounts.
 *
 * @param owners a JSON array, because a statement has at most 32,766 parameters.
 */
function balancesOf(store: ChainStore, caip2: string, owners: string): Holding[] {
  return store
    .all<{ owner: string; asset: string; amount: string }>(
      `select owner, asset, amount from balances
         where caip2 = ? and owner in (select value from json_each(?))
       union all select owner, mint, amount from token_accounts
         where caip2 = ? and owner in (select value from json_each(?))`,
      ...[caip2, owners, caip2, owners],
    )
    .map((row) => ({ ...row, amount: BigInt(row.amount) }));
}

/** Returns the balances of tokens that are kept in the storage of smart contracts. */
function tokenBalancesOf(
  store: ChainStore,
  { chain, evm }: Pick<Simulated, 'chain' | 'evm'>,
  owners: string,
): Holding[] {
  if (evm === undefined || evm.state.upstream !== undefined) return [];
  const received = store.all<{ owner: string; asset: string }>(
    `select distinct recipient as owner, asset from transfers
     where caip2 = ? and recipient in (select value from json_each(?)) and asset <> ''`,
    ...[chain.caip2, owners],
  );
  return received.map(({ owner, asset }) => ({
    ...{ owner, asset, amount: evm.state.ledger.balance(owner, asset) },
  }));
}

/** Returns the symbol and the decimals of an asset, or undefined for a token that does not exist. */
export async function termsOf(
  { store, knownTokens, nativeSymbol }: Tokens,
  { chain: { caip2 }, decimalsOf, evm, symbolOf }: Simulated,
  tokenAddress: string | null,
): Promise<AssetTerms | undefined> {
  const decimals = await decimalsOf(tokenAddress);
  if (decimals === undefined) return undefined;
  if (tokenAddress === null) return { symbol: nativeSymbol(caip2).toUpperCase(), decimals };
  const asset = toLedger(caip2, tokenAddress);
  const stored = store.first<{ symbol: string }>(
    'select symbol from tokens where caip2 = ? and address = ?',
    ...[caip2, asset],
  );
  const known = knownTokens().find((each) => each.caip2 === caip2 && toLedger(caip2, each.address) === asset);
  const own = evm && tokenAt(evm.state, asset);
  const symbol = own?.symbol ?? stored?.symbol ?? known?.symbol ?? (await symbolOf?.(asset));
  return { symbol: symbol ?? null, decimals };
}

/** CHOICE: at most this many movements of one transaction are shown. */
const MAX_MOVEMENTS = 1_000;

/** Returns the movements of assets in a transaction, in order, and its logs. */
export function effectsOf(
  store: ChainStore,
  { chain: { caip2 }, evm }: Pick<Simulated, 'chain' | 'evm'>,
  { hash, abis }: { readonly hash: string; readonly abis: Pick<Abis, 'event'> | undefined },
): TransactionEffects {
  const logs = (evm && findReceipt(evm.state, hash)?.logs) ?? [];
  return {
    movements: movementsByHash(store, caip2, [hash]).get(hash) ?? [],
    logs: logs.map((log) => ({ ...log, event: abis?.event(log) })),
  };
}

/** Returns the movements of assets in transactions, in order, by the hash of the transaction. */
export function movementsByHash(
  store: ChainStore,
  caip2: string,
  hashes: readonly string[],
): ReadonlyMap<string, TransactionEffects['movements']> {
  const movements = new Map<string, TransactionEffects['movements'][number][]>();
  // A single query for all hashes, because it reads all transfers of the chain.
  const rows = store.all<TransferRow & { hash: string }>(
    `select hash, sender, recipient, asset, amount from (
       select *, row_number() over (partition by hash order by position) as place
       from transfers where caip2 = ? and hash in (select value from json_each(?))
     ) where place <= ? order by position`,
    ...[caip2, JSON.stringify(hashes), MAX_MOVEMENTS],
  );
  for (const { hash, sender, recipient, asset, amount } of rows) {
    const found = movements.get(hash) ?? [];
    movements.set(hash, found);
    found.push({
      from: normalizeAddress(sender),
      to: normalizeAddress(recipient),
      tokenAddress: asset === NATIVE ? null : normalizeAddress(asset),
      rawAmount: BigInt(amount),
    });
  }
  return movements;
}

/**
 * Returns a function that finds the decimals and the price of an asset. It finds only assets that have a name in the
 * API.
 */
function namedAssetsOn(
  tokens: Tokens,
  { chain: { caip2 }, evm }: Pick<Simulated, 'chain' | 'evm'>,
): (asset: string) => { readonly decimals: number; readonly pricedAs: string } | undefined {
  const native = tokens.nativeSymbol(caip2);
  const own =
    evm === undefined
      ? tokens
          .knownTokens()
          .filter((token) => token.caip2 === caip2)
          .map(({ address, decimals, symbol }) => ({ address, decimals, pricedAs: symbol.toLowerCase() }))
      : tokensOn(evm.state);
  const named = new Map(own.map(({ address, decimals, pricedAs }) => [address, { decimals, pricedAs }]));
  named.set(NATIVE, { decimals: nativeDecimals[caip2.slice(0, caip2.indexOf(':'))] ?? 18, pricedAs: native });
  if (caip2.startsWith('solana:')) named.set(NATIVE_MINT, { decimals: 9, pricedAs: native });
  return (asset) => named.get(asset);
}

const nativeDecimals: Readonly<Record<string, number>> = { eip155: 18, solana: 9, tron: 6 };

/** Returns the accounts of the simulated bank that the faucet has funded, in the ledger's notation. */
async function treasuriesOn(store: ChainStore, caip2: string): Promise<readonly string[]> {
  const stocked = store.all<{ environment: FiatEnvironment }>(
    'select distinct environment from fiat_stocks where caip2 = ?',
    caip2,
  );
  const addresses = await Promise.all(stocked.map(({ environment }) => treasuryAddress(caip2, environment)));
  return addresses.flatMap((address) => (address === undefined ? [] : [toLedger(caip2, address)]));
}

function holdersOn(
  store: ChainStore,
  caip2: string,
  { treasuries, state }: { treasuries: readonly string[]; state: EvmState | undefined },
): (owner: string) => Holder {
  const vaults = state === undefined ? [] : vaultsOn(state);
  const pairs = state?.genesis.pairs() ?? [];
  const cardEnvironments = store
    .all<{ environment: CardEnvironment }>('select distinct environment from issuer_cards')
    .map(({ environment }) => environment);
  const solver = solverOn(caip2);
  const holders = new Map<string, Holder>([
    [FEE_ACCOUNT, 'fees'],
    [PAYMASTER_ADDRESS, 'sponsors'],
    [BUNDLER_ADDRESS, 'sponsors'],
    [DISTRIBUTOR_ADDRESS, 'rewards'],
    ...cardEnvironments.map((environment) => [issuerAddress(environment), 'cards'] as const),
    ...(solver === undefined ? [] : [[toLedger(caip2, solver), 'exchange'] as const]),
    ...treasuries.map((treasury) => [treasury, 'bank'] as const),
    ...pairs.map(({ address }) => [address, 'pools'] as const),
    ...vaults.map((vault) => [vault, 'vaults'] as const),
    ...vaults.map((vault) => [borrowerOf(vault), 'borrowers'] as const),
  ]);
  return (owner) => holders.get(owner) ?? 'accounts';
}
