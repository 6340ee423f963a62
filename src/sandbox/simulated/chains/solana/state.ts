import { TOKEN_PROGRAM } from '../../../../engine/signing/solana/associated-token.ts';
import { type Ledger, makeLedger, NATIVE } from '../ledger.ts';
import type { ChainStore } from '../store.ts';
import { knownToken, type World } from '../world.ts';
import {
  EMPTY_ACCOUNT,
  mintOf,
  type SolanaAccount,
  SYSTEM_PROGRAM,
  type TokenAccountData,
  tokenAccountOf,
} from './accounts.ts';

/** A token account. Addresses are base58. */
interface TokenAccount extends TokenAccountData {
  readonly address: string;
}

interface Mint {
  readonly decimals: number;
  readonly program: string;
}

/**
 * The accounts of one Solana chain.
 *
 * INVARIANT: the ledger has the lamports of accounts, and `solana_accounts` has everything else. `token_accounts` is
 * an index of the data of token accounts.
 */
export interface SolanaState {
  readonly store: ChainStore;
  readonly ledger: Ledger;
  account(address: string): SolanaAccount;
  write(address: string, account: SolanaAccount): void;
  /** Returns the addresses of the accounts that a program owns, in order. */
  ownedBy(program: string, page: { readonly after: string; readonly limit: number }): readonly string[];
  mint(address: string): Mint | undefined;
  tokenAccount(address: string): TokenAccount | undefined;
  tokenAccountsOf(owner: string, mint: string): readonly TokenAccount[];
  /**
   * Returns the addresses of an owner's token accounts.
   *
   * @param mint undefined for the token accounts of all mints.
   */
  tokenAddressesOf(owner: string, mint: string | undefined, limit: number): readonly string[];
}

/** SQLite's value for "no limit". */
const NO_LIMIT = -1;

interface AccountRow {
  readonly owner: string;
  readonly executable: number;
  readonly data: Buffer;
}

export function makeSolanaState(world: World, caip2: string): SolanaState {
  const { store } = world;
  const ledger = makeLedger(store, caip2);
  const account = (address: string): SolanaAccount => {
    const lamports = ledger.balance(address, NATIVE);
    if (lamports === 0n) return EMPTY_ACCOUNT;
    const row = store.first<AccountRow>(
      'select owner, executable, data from solana_accounts where caip2 = ? and address = ?',
      ...[caip2, address],
    );
    if (row === undefined) return { ...EMPTY_ACCOUNT, lamports };
    return { lamports, owner: row.owner, executable: row.executable === 1, data: row.data };
  };
  const tokenAccount = (address: string): TokenAccount | undefined => {
    const found = tokenAccountOf(account(address));
    return found && { address, ...found };
  };
  const tokenAddressesOf: SolanaState['tokenAddressesOf'] = (owner, mint, limit) =>
    store
      .all<{ address: string }>(
        `select address from token_accounts where caip2 = ? and owner = ? and mint = coalesce(?, mint)
         order by address limit ?`,
        ...[caip2, owner, mint ?? null, limit],
      )
      .map(({ address }) => address);
  return {
    store,
    ledger,
    account,
    write(address, { lamports, owner, executable, data }) {
      if (ledger.balance(address, NATIVE) !== lamports) ledger.setBalance(address, NATIVE, lamports);
      const isGone = lamports === 0n;
      const isPlain = owner === SYSTEM_PROGRAM && data.length === 0 && !executable;
      if (isGone || isPlain) {
        store.run('delete from solana_accounts where caip2 = ? and address = ?', caip2, address);
      } else {
        store.run(
          'insert or replace into solana_accounts values (?, ?, ?, ?, ?)',
          ...[caip2, address, owner, executable ? 1 : 0, data],
        );
      }
      store.run('delete from token_accounts where caip2 = ? and address = ?', caip2, address);
      const token = isGone ? undefined : tokenAccountOf({ lamports, owner, executable, data });
      if (token === undefined) return;
      store.run(
        'insert into token_accounts values (?, ?, ?, ?, ?, ?, ?)',
        ...[caip2, address, token.owner, token.mint, String(token.amount)],
        ...[token.delegate, String(token.delegatedAmount)],
      );
    },
    ownedBy: (program, { after, limit }) =>
      store
        .all<{ address: string }>(
          'select address from solana_accounts where caip2 = ? and owner = ? and address > ? order by address limit ?',
          ...[caip2, program, after, limit],
        )
        .map(({ address }) => address),
    mint(address) {
      const found = account(address);
      const mint = mintOf(found);
      if (mint !== undefined) return { decimals: mint.decimals, program: found.owner };
      const known = knownToken(world, caip2, address);
      return known && { decimals: known.decimals, program: TOKEN_PROGRAM };
    },
    tokenAccount,
    tokenAccountsOf: (owner, mint) =>
      tokenAddressesOf(owner, mint, NO_LIMIT).flatMap((address) => tokenAccount(address) ?? []),
    tokenAddressesOf,
  };
}

/** Returns an owner's total balance of a token, over all token accounts. */
export function holding(state: SolanaState, owner: string, mint: string): bigint {
  return state.tokenAccountsOf(owner, mint).reduce((sum, { amount }) => sum + amount, 0n);
}
