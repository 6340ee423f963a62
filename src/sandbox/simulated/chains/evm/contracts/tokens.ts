import { FEE_ACCOUNT, NATIVE } from '../../ledger.ts';
import { hasNativeAsset } from '../../sponsors.ts';
import { knownToken } from '../../world.ts';
import type { EvmState } from '../state.ts';
import { wrappedNativeOn } from './addresses.ts';
import type { TokenTerms } from './token-storage.ts';

/** A token that exists on a chain from the start. */
export interface NamedToken extends TokenTerms {
  /** Lower-case 0x hex. */
  readonly address: string;
  /** The lower-case name of the asset whose price the token has. */
  readonly pricedAs: string;
}

/** The amount of an asset that an account holds. */
export interface Holding {
  readonly owner: string;
  readonly asset: string;
  readonly amount: bigint;
}

type Chain = Pick<EvmState, 'world' | 'caip2' | 'chainId'>;

/** Returns the tokens that exist on a chain from the start. The wrapped native asset, if there is one, comes first. */
export function tokensOn(chain: Chain): readonly NamedToken[] {
  const wrapped = wrappedTokenOn(chain);
  const known = chain.world
    .knownTokens()
    .filter(({ caip2, address }) => caip2 === chain.caip2 && address.toLowerCase() !== wrapped?.address)
    .map(({ address, decimals, symbol }) => ({
      ...{ address: address.toLowerCase(), decimals, symbol, pricedAs: symbol.toLowerCase() },
    }));
  return wrapped === undefined ? known : [wrapped, ...known];
}

function wrappedTokenOn(chain: Chain): NamedToken | undefined {
  if (!hasNativeAsset(chain)) return undefined;
  const native = chain.world.nativeSymbol(chain.caip2);
  const address = wrappedNativeOn(chain.caip2);
  return { address, decimals: 18, symbol: `W${native.toUpperCase()}`, pricedAs: native };
}

/**
 * Returns the sandbox's own token at an address. Returns undefined for other addresses, for contracts that users
 * deployed, and for tokens of a real chain.
 */
export function tokenAt(state: EvmState, address: string): TokenTerms | undefined {
  const given = state.accounts.token(address);
  if (given !== undefined || state.upstream !== undefined) return given;
  const token = knownToken(state.world, state.caip2, address);
  if (token !== undefined) return token;
  const wrapped = wrappedTokenOn(state);
  return wrapped?.address === address ? wrapped : undefined;
}

/**
 * Returns the balances of a chain's accounts in the sandbox's tokens, and their initial balances. Tokens that never
 * moved are omitted. The native asset that backs the wrapped one is included as long as no balance is stored for it.
 */
export function tokenBooks(state: EvmState): {
  readonly held: readonly Holding[];
  readonly begunWith: readonly Holding[];
} {
  const { world, caip2, ledger, genesis } = state;
  const { store } = world;
  const moved = store.all<{ owner: string; asset: string }>(
    `select sender as owner, asset from transfers where caip2 = ? and asset <> ''
     union select recipient, asset from transfers where caip2 = ? and asset <> ''`,
    ...[caip2, caip2],
  );
  const assets = new Set(
    moved.map(({ asset }) => asset).filter((asset) => tokenAt(state, asset) !== undefined),
  );
  const begunWith = genesis.allocations().filter(({ asset }) => asset === NATIVE || assets.has(asset));
  const owners = [...moved, ...begunWith, ...[...assets].map((asset) => ({ asset, owner: FEE_ACCOUNT }))];
  const accounts = new Map(owners.map(({ owner, asset }) => [`${owner} ${asset}`, { owner, asset }]));
  const held = [...accounts.values()]
    .filter(({ asset }) => assets.has(asset))
    .map((account) => ({ ...account, amount: ledger.balance(account.owner, account.asset) }));
  const native = genesis.native();
  const isUnchanged =
    native !== undefined &&
    store.first(
      `select 1 from balances where caip2 = ? and owner = ? and asset = ''`,
      ...[caip2, native.owner],
    ) === undefined;
  return { held: isUnchanged ? [...held, native] : held, begunWith };
}
